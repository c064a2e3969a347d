"""The same module and the same arguments, twice: in PyTorch and here."""

from __future__ import annotations

import types
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import plimsoll
import torch
import translate


def ours(value: Any) -> Any:
    """An argument of a constructor, here."""
    return translate.tree(value, _leaf)


def _leaf(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        return module_here(value)
    if isinstance(value, torch.Tensor):
        return translate.to_ours(value)
    if isinstance(value, types.BuiltinFunctionType):
        return translate.lookup(f"nn.functional.{value.__name__}")
    return translate.constant(value)


def class_here(kind: type) -> Any:
    """Our class of the same name."""
    for place in (plimsoll.nn, plimsoll.nn.modules.attention):
        found = getattr(place, kind.__name__, None)
        if found is not None:
            return found
    raise translate.Absent(f"plimsoll.nn has no {kind.__name__}")


def module_here(module: torch.nn.Module) -> Any:
    """A copy of one of PyTorch's modules, attribute by attribute: for modules that are arguments of others."""
    made = class_here(type(module)).__new__(class_here(type(module)))
    plimsoll.nn.Module.__init__(made)
    for name, value in module.__dict__.items():
        if not name.startswith("_") or isinstance(value, (bool, int, float, str, tuple)):
            setattr(made, name, ours(value))
    for name, param in module._parameters.items():
        given = None if param is None else plimsoll.nn.Parameter(translate.to_ours(param), param.requires_grad)
        made.register_parameter(name, given)
    for name, buffer in module._buffers.items():
        made.register_buffer(name, None if buffer is None else translate.to_ours(buffer))
    for name, child in module._modules.items():
        made.add_module(name, None if child is None else module_here(child))
    return made


def built(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> tuple[Any, Any]:
    """The module of a sample, twice, each with first values of its own."""
    args, kwargs = sample.constructor_input.args, sample.constructor_input.kwargs
    here = class_here(info.module_cls)(*ours(args), **ours(kwargs))
    theirs = info.module_cls(*args, **kwargs)
    theirs.to(dtype).train(training)
    here.to(translate.DTYPES[dtype]).train(training)
    return theirs, here


def arguments(sample: Any) -> translate.Arguments:
    """The arguments of one call, twice."""
    given = sample.forward_input
    call = SimpleNamespace(input=None, args=tuple(given.args), kwargs=dict(given.kwargs))
    return translate.Arguments(call, requires_grad=True)


def copy_state(theirs: torch.nn.Module, here: Any) -> None:
    """PyTorch's values into our module."""
    state = OrderedDict((name, translate.to_ours(value)) for name, value in theirs.state_dict().items())
    state._metadata = theirs.state_dict()._metadata  # type: ignore[attr-defined]
    here.load_state_dict(state)


def give_shapes(sample: Any, theirs: torch.nn.Module, here: Any) -> None:
    """Calls lazy modules once, which gives their parameters shapes."""
    given = arguments(sample)
    theirs(*given.theirs[1], **given.theirs[2])
    here(*given.ours[1], **given.ours[2])


def is_lazy(theirs: torch.nn.Module) -> bool:
    return any(isinstance(value, torch.nn.parameter.UninitializedTensorMixin) for value in theirs.state_dict().values())
