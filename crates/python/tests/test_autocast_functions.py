"""Custom functions in mixed precision: `custom_fwd` and `custom_bwd`."""

import plimsoll
import pytest
from plimsoll import amp


def function(**options):
    seen = []

    class Product(plimsoll.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", **options)
        def forward(ctx, left, right):
            result = left @ right
            ctx.save_for_backward(left, right)
            seen.append((left.dtype, result.dtype))
            return result

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            left, right = ctx.saved_tensors
            seen.append((grad @ right.t()).dtype)
            return grad.float() @ right.float().t(), left.float().t() @ grad.float()

    return Product, seen


def test_backward_runs_as_forward_did():
    product, seen = function()
    x = plimsoll.ones(2, 2, requires_grad=True)
    with plimsoll.autocast("cpu", dtype=plimsoll.bfloat16):
        y = product.apply(x, x)
    y.float().sum().backward()
    assert seen == [(plimsoll.float32, plimsoll.bfloat16), plimsoll.bfloat16]
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_inputs_are_cast_and_the_region_is_left():
    product, seen = function(cast_inputs=plimsoll.float32)
    x = plimsoll.ones(2, 2, dtype=plimsoll.bfloat16).requires_grad_()
    with plimsoll.autocast("cpu", dtype=plimsoll.bfloat16):
        y = product.apply(x, x)
    y.sum().backward()
    assert seen == [(plimsoll.float32, plimsoll.float32), plimsoll.float32]


def test_without_a_region_nothing_is_cast():
    product, seen = function(cast_inputs=plimsoll.float16)
    product.apply(plimsoll.ones(1, 1), plimsoll.ones(1, 1))
    assert seen == [(plimsoll.float32, plimsoll.float32)]


def test_a_kind_of_device_is_a_name():
    with pytest.raises(ValueError, match="device_type"):
        amp.custom_fwd(device_type=3)
