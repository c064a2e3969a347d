"""Writes the files that the tests read: what PyTorch and the safetensors package write, a few kB in all.

Needs PyTorch 2.15 and safetensors: `python crates/files/tests/golden/make_golden.py`, from anywhere. What the files hold
is said a second time in `tests/golden.rs` and in `crates/python/tests/test_files.py`.
"""

import collections
import os
import pathlib

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent


class Own:
    """A class that no reader of weights may know."""


class Command:
    """What a hostile file would run."""

    def __reduce__(self):
        return os.system, ("touch /tmp/plimsoll-was-here",)


def values():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    twice = torch.tensor([1.0, 2.0])
    dtypes = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    return {
        "dtypes": {name: torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in dtypes},
        "base": base,
        "transposed": base.t(),
        "part": base[1:, 1:3],
        "expanded": torch.tensor([5.0]).expand(2, 3),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 3),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.full((2, 2), 3.0)),
        "frozen": torch.nn.Parameter(torch.zeros(1), requires_grad=False),
        "twice": [twice, twice],
        "plain": [
            *[None, True, False, 0, 255, 256, 65536, -1, 2**31, -(2**63), 2**64 - 1, 2**70],
            *[0.1, "", "gr\u00fc\u00df", b"\x00\xff", ()],
        ],
        "nested": {1: [(2, {"three": [[]]})], ("a", 1): {"set": {7}}},
        "ordered": collections.OrderedDict(b=1, a=2),
        "size": base.shape,
        "dtype": torch.bfloat16,
    }


def attributed():
    """Tensors with attributes, and the values that protocol 2 makes by a call."""
    noted, parameter = torch.ones(2), torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    noted.note, noted.places = "first", [1, 2]
    parameter.rate = 0.5
    buffer = torch.nn.Buffer(torch.arange(2.0))
    values = {"noted": noted, "again": noted, "parameter": parameter, "buffer": buffer}
    return {**values, "complex": 1.5 - 2j, "bytearray": bytearray(b"a\xff"), "empty": bytearray()}


def circles():
    """Containers that hold themselves."""
    plain, table, ordered, first, second = [1], {}, collections.OrderedDict(), [], []
    plain.append(plain)
    table["itself"], table["x"] = table, torch.ones(1)
    ordered["in"] = [ordered]
    first.append(second)
    second.append(first)
    return {"list": plain, "dict": table, "ordered": ordered, "both": [first, second]}


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()
        scheduler.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    return model, {**state, "step": 3}


def tensors():
    return {
        "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
        "brain": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "mask": torch.tensor([True, False, True]),
        "step": torch.tensor(7),
        "bytes": torch.tensor([1, 255], dtype=torch.uint8),
        "none": torch.empty(0, 2, dtype=torch.float64),
    }


def main():
    torch.save(values(), HERE / "values.pt")
    torch.save(values(), HERE / "protocol4.pt", pickle_protocol=4)
    torch.save([torch.device("cpu"), torch.device("cuda", 1)], HERE / "devices.pt")
    torch.save(attributed(), HERE / "attributed.pt")
    torch.save(circles(), HERE / "circles.pt")
    torch.save(training()[1], HERE / "training.pt")
    torch.save({"model": Own()}, HERE / "class.pt")
    torch.save([Command()], HERE / "command.pt")
    torch.save(torch.ones(2), HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.ones(2, dtype=torch.complex64), HERE / "complex.pt")
    torch.save(torch.eye(2).to_sparse(), HERE / "sparse.pt")
    save_file(tensors(), HERE / "tensors.safetensors", metadata={"format": "pt", "epoch": "3"})


if __name__ == "__main__":
    main()
