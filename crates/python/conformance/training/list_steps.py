"""Steps over lists of tensors (`optim.adam.adam` and its kin) beside PyTorch's: its classes call their functions, each call
is written down and made here with the same tensors, and what both changed is compared."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import plimsoll
import torch
import translate
from nearness import Wrong, is_near

STEPS = 4


def has_lists(kind: type) -> bool:
    """Whether PyTorch's optimizer steps by a function over lists, which is one that is not recorded."""
    return kind is not torch.optim.LBFGS


def same_lists(kind: type, kwargs: dict[str, Any], dtype: str) -> None:
    """A few steps of PyTorch's optimizer, whose calls give the same here."""
    module, name = _place(kind)
    theirs = getattr(module, name)
    ours = getattr(importlib.import_module(f"plimsoll.optim.{name}"), name)
    calls = []

    def compared(*args: Any, **options: Any) -> None:
        here = [translate.tree(list(one) if isinstance(one, list) else one, _leaf) for one in args]
        here_options = {key: translate.tree(value, _leaf) for key, value in options.items()}
        theirs(*args, **options)
        calls.append(len(args[0]))
        if options.get("differentiable"):
            _refused(ours, here, here_options)
            return
        ours(*here, **here_options)
        for at, (left, right) in enumerate(zip(args, here, strict=True)):
            _same(f"argument {at} after {len(calls)} calls", left, right)

    torch.manual_seed(5)
    params = [torch.nn.Parameter(torch.randn(shape, dtype=getattr(torch, dtype))) for shape in [(5, 4), (7,), ()]]
    optimizer = kind(params, **kwargs)
    setattr(module, name, compared)
    try:
        for _ in range(STEPS):
            for param in params:
                param.grad = torch.randn_like(param)
            optimizer.step()
    finally:
        setattr(module, name, theirs)
    if not calls:
        raise Wrong(f"{kind.__name__} made no call of {name}")


def _place(kind: type) -> tuple[Any, str]:
    """The module whose function the class calls, and the function's name."""
    kind = torch.optim.Adam if kind is torch.optim.AdamW else kind
    name = kind.__name__.lower()
    return sys.modules[kind.__init__.__module__], name


def _leaf(value: Any) -> Any:
    return translate.to_ours(value.detach().clone()) if isinstance(value, torch.Tensor) else value


def _refused(ours: Any, args: list[Any], options: dict[str, Any]) -> None:
    try:
        ours(*args, **options)
    except RuntimeError as refusal:
        if "differentiable=True" in str(refusal):
            return
        raise
    raise Wrong("a recorded step over lists was not refused")


def _same(what: str, left: Any, right: Any) -> None:
    if isinstance(left, list):
        for one, other in zip(left, right, strict=True):
            _same(what, one, other)
    elif isinstance(left, torch.Tensor):
        if not isinstance(right, plimsoll.Tensor):
            raise Wrong(f"{what} is {right!r}, in PyTorch a tensor")
        right = translate.to_torch(right)
        if left.dtype != right.dtype or not is_near(left.detach(), right):
            raise Wrong(f"{what} is {right}, in PyTorch {left}")
    elif left != right:
        raise Wrong(f"{what} is {right!r}, in PyTorch {left!r}")
