"""The device `meta`: shapes, dtypes and gradients of tensors that have no memory, as in PyTorch."""

from __future__ import annotations

import plimsoll
import pytest
from plimsoll import nn


def test_operations_infer_shapes_and_take_no_memory():
    before = plimsoll.memory_allocated("cpu")
    x = plimsoll.empty(1 << 20, 1 << 12, device="meta")
    assert x.is_meta and x.device == plimsoll.device("meta") and str(x.device) == "meta"
    assert not plimsoll.ones(1).is_meta
    y = (x.half() @ x.half().T[:, :8]).sum(0)
    assert (y.shape, y.dtype, y.device.type) == ((8,), plimsoll.float16, "meta")
    assert repr(y) == "tensor(..., device='meta', size=(8,), dtype=torch.float16)"
    assert plimsoll.memory_allocated("cpu") == before
    assert plimsoll.zeros(2, device="meta:0").device == plimsoll.device("meta")


def test_gradients_flow():
    x = plimsoll.randn(3, 4, device="meta", requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is not None and x.grad.is_meta and x.grad.shape == (3, 4)


def test_modules_are_made_without_memory_and_filled_later():
    with plimsoll.device("meta"):
        model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert all(parameter.is_meta for parameter in model.parameters())
    assert model(plimsoll.ones(5, 2, device="meta")).shape == (5, 3)
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    model.load_state_dict(other.state_dict(), assign=True)
    assert model(plimsoll.ones(5, 2)).tolist() == other(plimsoll.ones(5, 2)).tolist()
    empty = nn.Linear(2, 3, device="meta").to_empty(device="cpu")
    assert empty.weight.device.type == "cpu"
    filled = plimsoll.ones(3, device="meta").copy_(plimsoll.ones(3))
    assert filled.is_meta


def test_a_state_that_is_copied_to_nowhere_is_told():
    model, other = nn.Linear(2, 3, bias=False, device="meta"), nn.Linear(2, 3, bias=False)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter .* which is a no-op"):
        model.load_state_dict(other.state_dict())
    assert model.weight.is_meta


def test_it_is_no_cpu():
    x = plimsoll.ones(2, device="meta")
    assert not x.is_cpu and not x.is_cuda and plimsoll.ones(2).is_cpu
    assert x.type() == "torch.meta.FloatTensor"


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.cpu(),
        lambda x: plimsoll.ones(3).copy_(x),
        lambda x: x.nonzero(),
        lambda x: nn.Linear(2, 3, device="meta").to("cpu"),
    ],
)
def test_what_needs_values_is_refused(use):
    with pytest.raises(NotImplementedError):
        use(plimsoll.ones(3, device="meta"))
    with pytest.raises(RuntimeError):
        plimsoll.ones(1, device="meta").item()
