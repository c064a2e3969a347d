"""PyTorch's functions over lists of tensors, `torch._foreach_add_(params, 1.0)`, which optimizers and averages of weights
are written with: each is the method of its name, tensor by tensor. Plimsoll's own optimizers have operations for all at
once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _plimsoll, linalg
from ._plimsoll import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
#: Of two lists, or a list and a number, a list of numbers, or a tensor of one element.
_BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub".split()
_TERNARY = "addcdiv addcmul lerp".split()
#: What the operand of those is called, by what it is.
_OPERANDS = ("other", "scalar", "scalars", "tensor", "exponent")
#: Methods of other names, which take numbers too.
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max", "maximum_": "clamp_min_", "minimum_": "clamp_max_"}


def _listed(tensors: Any, name: str) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    for at, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(tensor).__name__}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _spread(given: Any, count: int) -> list[Any]:
    """One for each tensor of the list: of a list its items, else the same for all."""
    if isinstance(given, (list, tuple)):
        if len(given) != count:
            if given and isinstance(given[0], Tensor):
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(given)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(given)
    if isinstance(given, Tensor) and given.dim() != 0:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {given.dim()} dimensions and {given.numel()} elements."
        )
    return [given] * count


def _numbers(values: Any, count: int) -> list[Any]:
    """The factors of `addcmul` and `addcdiv`, which may lie in a tensor."""
    return _spread(values.tolist() if isinstance(values, Tensor) and values.dim() == 1 else values, count)


def _operand(own: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The operand, by its place or by one of PyTorch's names for it, and what follows it."""
    if args:
        return args[0], args[1:]
    for name in _OPERANDS:
        if name in kwargs:
            return kwargs.pop(name), ()
    raise TypeError(f"{own}() received an invalid combination of arguments: it needs {', '.join(_OPERANDS[:-1])} or {_OPERANDS[-1]}")


def _one_by_one(name: str, operands: int) -> Callable[..., Any]:
    """A function over lists, of a method with so many operands beside its tensor."""
    own, called, writes = f"_foreach_{name}", _METHODS.get(name, name), name.endswith("_")

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "pow" and not isinstance(self, (list, tuple)):
            return tuple(_plimsoll.pow(self, exponent) for exponent in _listed(_operand(own, args, kwargs)[0], own))
        tensors = _listed(self, own)
        if operands == 1:
            operand, rest = _operand(own, args, kwargs)
            others = _spread(operand, len(tensors))
            made = [getattr(tensor, called)(other, *rest, **kwargs) for tensor, other in zip(tensors, others)]
        elif operands == 2:
            made = _ternary(name, tensors, *args, **kwargs)
        else:
            made = [getattr(tensor, called)(*args, **kwargs) for tensor in tensors]
        # PyTorch gives the list back that it wrote to, and a tuple of what is new.
        return self if writes else tuple(made)

    run.__name__ = run.__qualname__ = own
    run.__module__ = "plimsoll"
    run.__doc__ = f"`tensor.{called}(…)` of each tensor of a list."
    return run


def _ternary(name: str, tensors: list[Tensor], *args: Any, **named: Any) -> list[Any]:
    first, second, value = (*args, None, None, None)[:3]
    first = named.get("tensor1", named.get("tensors1", first))
    second, value = named.get("tensor2", second), named.get("value", 1 if value is None else value)
    # Numbers and single tensors stand for all tensors of a list in PyTorch's weights and factors alone.
    if len(args) > 3 or not isinstance(first, (list, tuple)):
        raise TypeError(f"_foreach_{name}() received an invalid combination of arguments: its operands are lists of tensors")
    firsts = _spread(first, len(tensors))
    if name in ("lerp", "lerp_"):
        weights = _spread(named.get("weight", named.get("weights", second)), len(tensors))
        return [getattr(tensor, name)(end, weight) for tensor, end, weight in zip(tensors, firsts, weights)]
    values = _numbers(named.get("scalars", value), len(tensors))
    if not isinstance(second, (list, tuple)):
        raise TypeError(f"_foreach_{name}(): argument 'tensor2' (position 3) must be tuple of Tensors, not {type(second).__name__}")
    seconds = _spread(second, len(tensors))
    return [getattr(tensor, name)(a, b, value=factor) for tensor, a, b, factor in zip(tensors, firsts, seconds, values)]


def _foreach_norm(self: Any, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor of a list."""
    return tuple(linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in _listed(self, "_foreach_norm"))


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor of a list."""
    return tuple(tensor.max() for tensor in _listed(self, "_foreach_max"))


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each tensor of a list."""
    options = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(tensor.clone(**options) for tensor in _listed(self, "_foreach_clone"))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes each tensor of a list to the one in its place."""
    tensors = _listed(self, "_foreach_copy_")
    if not isinstance(src, (list, tuple)):
        raise TypeError(f"_foreach_copy_(): argument 'src' (position 2) must be tuple of Tensors, not {type(src).__name__}")
    for tensor, source in zip(tensors, _spread(src, len(tensors))):
        tensor.copy_(source, non_blocking)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Writes zeros to each tensor of a list."""
    for tensor in _listed(self, "_foreach_zero_"):
        tensor.zero_()
    return self


#: The functions by their names.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    made.__name__: made
    for names, operands in ((_UNARY, 0), (_BINARY, 1), (_TERNARY, 2))
    for name in names
    for made in (_one_by_one(name, operands), _one_by_one(f"{name}_", operands))
}
for _function in (_foreach_norm, _foreach_max, _foreach_clone, _foreach_copy_, _foreach_zero_):
    FUNCTIONS[_function.__name__] = _function
