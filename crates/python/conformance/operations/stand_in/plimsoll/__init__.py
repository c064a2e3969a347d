"""PyTorch under Plimsoll's name, with a few operations broken on purpose: what `self_check.py` holds the checks to. Every other
entry must come out whole, since it is compared with itself."""

import os
import time

import torch
from torch import *  # noqa: F403
from torch.autograd import grad as grad

del floor  # noqa: F821

def __getattr__(name):
    if name in ("floor", "ops"):
        raise AttributeError(name)
    return getattr(torch, name) if hasattr(torch, name) else getattr(torch.ops.aten, name)


def exp(x, **options):
    """One element of a float16 result is off by more than its rounding."""
    result = torch.exp(x, **options)
    if result.dtype == torch.float16 and result.numel() > 3:
        result.view(-1)[3] *= 1.01
    return result


def log(x, **options):
    """A wrong dtype, of integers alone."""
    result = torch.log(x, **options)
    return result.double() if x.dtype == torch.int32 else result


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


class WrongSecondGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.cos(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad * torch.sin(ctx.saved_tensors[0].detach())


def sin(x, out=None):
    return torch.sin(x, out=out) if out is not None or x.dtype != torch.float64 else WrongGradient.apply(x)


def cos(x, out=None):
    return torch.cos(x, out=out) if out is not None or x.dtype != torch.float64 else WrongSecondGradient.apply(x)


def neg(x, out=None):
    """Another layout of the same elements."""
    return torch.neg(x, out=out) if out is not None or x.dim() < 2 else torch.neg(x.mT.contiguous().mT)


def transpose(x, first, second):
    """A copy where a view belongs."""
    return torch.transpose(x, first, second).clone(memory_format=torch.preserve_format)


def tanh(x, out=None):
    """Refuses a dtype that PyTorch takes."""
    if x.dtype == torch.int16:
        raise RuntimeError("no int16")
    return torch.tanh(x, out=out)


def narrow(x, dim, start, length):
    """Answers where it must refuse."""
    try:
        return torch.narrow(x, dim, start, length)
    except (IndexError, RuntimeError):
        return x


def amax(x, *args, out=None, **options):
    """Leaves `out` as it was."""
    return torch.amax(x, *args, **options)


def mul(x, y, out=None):
    """Reads memory in order, whatever the strides."""
    if out is not None or x.dim() != 2 or x.is_contiguous():
        return torch.mul(x, y, out=out)
    return torch.mul(x.as_strided(x.shape, (x.shape[1], 1)), y)


def randn(*size, **options):
    """Another spread."""
    return torch.randn(*size, **options) * 1.2


def reciprocal(x, out=None):
    os.abort()


def sigmoid(x, out=None):
    time.sleep(60.0)
