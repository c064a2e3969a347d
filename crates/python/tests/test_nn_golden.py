"""Every layer that PyTorch's states, results, gradients and texts were written down of, by
`crates/nn/tests/golden/make_golden.py`: the Rust layers are held to the same file."""

import json
import math
import pathlib

import plimsoll
import pytest
from plimsoll import nn

GOLDEN = pathlib.Path(__file__).parents[2] / "nn" / "tests" / "golden" / "layers.json"
PACKED = " of packed sequences"
LENGTHS = [3, 5, 2, 5]
CASES = {case["name"]: case for case in json.loads(GOLDEN.read_text())}


def tensor(told):
    if "whole" in told:
        return plimsoll.tensor(told["whole"], dtype=plimsoll.int64).reshape(told["shape"])
    return plimsoll.tensor(told["data"], dtype=plimsoll.float64).reshape(told["shape"])


def tensors(value):
    if isinstance(value, plimsoll.Tensor):
        return [value]
    return [one for part in value if part is not None for one in tensors(part)]


def near(found, told, name, what):
    assert list(found.shape) == told["shape"], what
    # PyTorch's gradient of `Hardsigmoid` is a sixth in float32, whatever the dtype.
    rounding = 1e-7 if name.startswith("Hardsigmoid") else 1e-9
    expected = told["whole"] if "whole" in told else told["data"]
    assert found.flatten().tolist() == pytest.approx(expected, rel=rounding, abs=rounding), what


def called(module, name, given):
    if not name.endswith(PACKED):
        more = {"need_weights": True} if name.startswith("Multihead") else {}
        return tensors(module(*given, **more))
    packed = nn.utils.rnn.pack_padded_sequence(given[0], LENGTHS, enforce_sorted=False)
    every, *states = module(packed, *given[1:])
    padded, lengths = nn.utils.rnn.pad_packed_sequence(every)
    assert lengths.tolist() == LENGTHS
    return [every.data, padded, *tensors(states)]


@pytest.mark.parametrize("name", CASES)
def test_layers_are_pytorchs(name):
    case = CASES[name]
    module = eval(f"nn.{name.removesuffix(PACKED)}", {"nn": nn, "torch": plimsoll}).double()
    assert repr(module) == case["text"]
    assert list(module.state_dict()) == list(case["state"])
    module.load_state_dict({key: tensor(told) for key, told in case["state"].items()})
    given = []
    for told, gradient in zip(case["inputs"], case["input_gradients"], strict=True):
        given.append(tensor(told).requires_grad_(gradient is not None))
    results = called(module, name, given)
    assert len(results) == len(case["results"])
    loss = 0
    for at, (found, told) in enumerate(zip(results, case["results"], strict=True)):
        near(found, told, name, f"result {at}")
        factors = [math.cos(place) for place in range(found.numel())]
        loss = loss + (found * plimsoll.tensor(factors, dtype=plimsoll.float64).reshape(found.shape)).sum()
    if loss.requires_grad:
        loss.backward()
    for key, parameter in module.named_parameters():
        assert (parameter.grad is None) == (case["gradients"][key] is None), key
        if parameter.grad is not None:
            near(parameter.grad, case["gradients"][key], name, key)
    for at, (one, told) in enumerate(zip(given, case["input_gradients"], strict=True)):
        if told is not None:
            near(one.grad, told, name, f"gradient of input {at}")
    for key, buffer in module.named_buffers():
        near(buffer, case["buffers"][key], name, key)
