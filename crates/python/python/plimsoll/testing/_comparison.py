"""`assert_close`: PyTorch's tolerances and messages, over numbers, tensors, arrays, sequences and mappings of them."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _plimsoll
from .._plimsoll import Tensor

# The share and the difference that are allowed, by dtype; what is not here must be equal.
_TOLERANCES = {
    _plimsoll.float16: (1e-3, 1e-5),
    _plimsoll.bfloat16: (1.6e-2, 1e-5),
    _plimsoll.float32: (1.3e-6, 1e-5),
    _plimsoll.float64: (1e-7, 1e-7),
}


class _Rules(NamedTuple):
    """What counts as close, and which attributes must agree."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    device: bool
    dtype: bool
    stride: bool

    def tolerances(self, *dtypes: _plimsoll.dtype) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        of = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in of), max(atol for _, atol in of)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises `AssertionError` unless `|actual - expected| <= atol + rtol * |expected|` everywhere, the tolerances being
    those of the dtype unless both are given.

    >>> import plimsoll as pm
    >>> pm.testing.assert_close(pm.tensor([1.0, 2.0]), pm.tensor([1.0, 2.0 + 1e-6]))
    """
    if (rtol is None) != (atol is None):
        gone = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {gone}.")
    rules = _Rules(rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    found = _difference(actual, expected, rules, "", allow_subclasses)
    if found is None:
        return
    message, item = found
    said = message + (f"\n\nThe failure occurred for item {item}" if item else "")
    if callable(msg):
        said = msg(said)
    elif msg is not None:
        said = msg
    raise AssertionError(said)


def _difference(actual: Any, expected: Any, rules: _Rules, item: str, subclasses: bool) -> tuple[str, str] | None:
    """The first difference in words and where it is; None if there is none."""
    if actual is None and expected is None:
        return None
    if isinstance(actual, bool) and isinstance(expected, bool):
        return None if actual is expected else (f"Booleans mismatch: {actual} is not {expected}", item)
    if _is_number(actual) and _is_number(expected):
        found = _of_numbers(actual, expected, rules)
        return (found, item) if found else None
    if _is_array(actual) and _is_array(expected):
        found = _of_tensors(_tensor(actual), _tensor(expected), rules)
        return (found, item) if found else None
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return _of_mappings(actual, expected, rules, item, subclasses)
    if _is_sequence(actual) and _is_sequence(expected):
        return _of_sequences(actual, expected, rules, item, subclasses)
    kinds = f"{type(actual)} and {type(expected)}"
    where = f"\n\nThe failure occurred for item {item}" if item else ""
    raise TypeError(f"No comparison pair was able to handle inputs of type {kinds}.{where}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__array_interface__")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _tensor(value: Any) -> Tensor:
    return value.detach() if isinstance(value, Tensor) else _plimsoll.tensor(value)


def _of_mappings(actual: Any, expected: Any, rules: _Rules, item: str, subclasses: bool) -> tuple[str, str] | None:
    gone, more = [key for key in expected if key not in actual], [key for key in actual if key not in expected]
    if gone or more:
        said = "The keys of the mappings do not match:\n"
        said += f"Missing keys in the actual mapping: {sorted(gone)}\n" if gone else ""
        said += f"Additional keys in the actual mapping: {sorted(more)}" if more else ""
        return said.rstrip("\n"), item
    for key in expected:
        found = _difference(actual[key], expected[key], rules, f"{item}[{key!r}]", subclasses)
        if found:
            return found
    return None


def _of_sequences(actual: Any, expected: Any, rules: _Rules, item: str, subclasses: bool) -> tuple[str, str] | None:
    if len(actual) != len(expected):
        return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", item
    for at, (one, other) in enumerate(zip(actual, expected)):
        found = _difference(one, other, rules, f"{item}[{at}]", subclasses)
        if found:
            return found
    return None


def _of_numbers(actual: Any, expected: Any, rules: _Rules, tolerances: tuple[float, float] | None = None) -> str | None:
    if tolerances is None:
        if rules.dtype and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        floats = [_plimsoll.float64 if isinstance(value, (float, complex)) else _plimsoll.int64 for value in (actual, expected)]
        tolerances = rules.tolerances(*floats)
    rtol, atol = tolerances
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return None
    apart = abs(actual - expected)
    if not (cmath.isnan(apart) or cmath.isinf(apart)) and apart <= atol + rtol * abs(expected):
        return None
    share = apart / abs(expected) if expected else float("inf")
    is_exact = rtol == 0 and atol == 0
    absolute = "" if is_exact else f" (up to {atol} allowed)"
    relative = "" if is_exact else f" (up to {rtol} allowed)"
    return (
        f"Scalars are not {'equal' if is_exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {apart}{absolute}\nRelative difference: {share}{relative}"
    )


def _of_tensors(actual: Tensor, expected: Tensor, rules: _Rules) -> str | None:
    if actual.shape != expected.shape:
        return _attribute("shape", actual.shape, expected.shape)
    if rules.device and actual.device != expected.device:
        return _attribute("device", actual.device, expected.device)
    if rules.dtype and actual.dtype != expected.dtype:
        return _attribute("dtype", actual.dtype, expected.dtype)
    if rules.stride and actual.stride() != expected.stride():
        return _attribute("stride()", actual.stride(), expected.stride())
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = max((actual.dtype, expected.dtype), key=lambda one: (one.is_floating_point, one.itemsize))
        actual, expected = actual.to(dtype), expected.to(dtype)
    if not actual.is_floating_point():
        actual, expected = actual.to(_plimsoll.int64), expected.to(_plimsoll.int64)
    close = _plimsoll.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if bool(close.all()):
        return None
    if actual.dim() == 0:
        return _of_numbers(actual.item(), expected.item(), rules, (rtol, atol))
    return _mismatches(actual, expected, close, rtol, atol)


def _attribute(name: str, actual: Any, expected: Any) -> str:
    return f"The values for attribute {name!r} do not match: {actual} != {expected}."


def _mismatches(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    count, whole = int((~close).sum()), close.numel()
    apart = (actual - expected).abs()
    apart = _plimsoll.where(close, _plimsoll.zeros_like(apart), apart)
    share = apart / expected.abs()
    share = _plimsoll.where(close, _plimsoll.zeros_like(share), share)
    is_exact = rtol == 0 and atol == 0
    rows = []
    for name, values, allowed in (("absolute", apart, atol), ("relative", share, rtol)):
        at = int(values.reshape(-1).argmax())
        index = tuple(int(part) for part in _unravelled(at, tuple(actual.shape)))
        limit = "" if is_exact else f" (up to {allowed} allowed)"
        rows.append(f"Greatest {name} difference: {values.reshape(-1)[at].item()} at index {index}{limit}")
    return (
        f"Tensor-likes are not {'equal' if is_exact else 'close'}!\n\n"
        f"Mismatched elements: {count} / {whole} ({count / whole:.1%})\n" + "\n".join(rows)
    )


def _unravelled(at: int, shape: tuple[int, ...]) -> list[int]:
    index = []
    for size in reversed(shape):
        index.append(at % size)
        at //= size
    return index[::-1]
