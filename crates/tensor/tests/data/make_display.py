"""Writes display.txt: how PyTorch prints the tensors that tests/display.rs builds under the same names."""

import pathlib

import torch

nan, inf = float("nan"), float("inf")
arange = lambda *shape: torch.arange(torch.Size(shape).numel()).reshape(shape)

CASES = {
    "scalar": torch.tensor(2.5),
    "whole scalar": torch.tensor(3.0),
    "int scalar": torch.tensor(-7),
    "bool scalar": torch.tensor(True),
    "whole floats": torch.tensor([1.0, -20.0, 300.0]),
    "fractions": torch.tensor([0.5, -1.25, 10.0]),
    "rounded": torch.tensor([0.12345678, 99.99999, 0.00015]),
    "scientific by ratio": torch.tensor([0.001, 10.0, -3.5]),
    "scientific by size": torch.tensor([1.0e9, 2.0e9]),
    "scientific by smallness": torch.tensor([0.00001, 0.00002]),
    "scientific whole": torch.tensor([1.0, 20000.0, 0.0]),
    "huge": torch.tensor([1e300, -1e-300], dtype=torch.float64),
    "zeros": torch.zeros(2, 2),
    "negative zero": torch.tensor([-0.0, 1.0]),
    "not finite": torch.tensor([nan, inf, -inf]),
    "not finite among whole": torch.tensor([1.0, nan, -inf, 22.0]),
    "not finite among fractions": torch.tensor([1.5, nan, -inf, 22.0]),
    "not finite scientific": torch.tensor([1.5e-7, nan, inf]),
    "ints": torch.tensor([[1, -200], [30, 4]]),
    "large ints": torch.tensor([9007199254740993, -1]),
    "bools": torch.tensor([[True, False], [False, False]]),
    "float64": torch.tensor([1.5], dtype=torch.float64),
    "float16": torch.tensor([1.5, 65504.0], dtype=torch.float16),
    "bfloat16": torch.tensor([0.1], dtype=torch.bfloat16),
    "int32": torch.tensor([1, 2], dtype=torch.int32),
    "uint8": torch.tensor([1, 255], dtype=torch.uint8),
    "empty": torch.zeros(0),
    "empty matrix": torch.zeros(2, 0),
    "empty ints": torch.zeros(0, dtype=torch.int64),
    "empty double matrix": torch.zeros(0, 3, dtype=torch.float64),
    "wrapped": arange(40).float() / 8,
    "three dimensions": arange(2, 2, 3).float(),
    "four dimensions": arange(2, 1, 2, 2),
    "summary of a vector": arange(2000),
    "summary of a matrix": arange(40, 50).float() / 4,
    "summary of rows": arange(500, 3),
    "summary of columns": arange(2, 3, 400),
    "thousand": arange(1000)[:1000].reshape(50, 20).float(),
    "transposed": arange(2, 3).t(),
    "leaf": torch.tensor([1.5]).requires_grad_(),
    "wide leaf": (arange(12).float() / 7).requires_grad_(),
    "wide double leaf": (arange(11).double() / 7).requires_grad_(),
    "double leaf": (arange(8).double() / 7).requires_grad_(),
}

with open(pathlib.Path(__file__).parent / "display.txt", "w") as file:
    for name, tensor in CASES.items():
        file.write(f"== {name}\n{str(tensor)}\n")
