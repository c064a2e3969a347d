"""Cases that PyTorch answered, written down as JSON and called again without it: `golden.py` records them, and a test of the package
replays them.

A case is `{"entry", "call", "values", "results", "leaves", "cotangents", "gradients"}`: `call` is a path below the package,
`values` are the arguments in place and by name."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from typing import Any

import numpy
import plimsoll

# Relative and absolute. Sums are ordered otherwise on other machines.
TOLERANCES = {"float32": (1e-4, 1e-5), "float64": (1e-7, 1e-7)}


def encoded(value: Any) -> Any:
    """A value that is no tensor, as JSON; `TypeError` if there is none."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return {type(value).__name__ if isinstance(value, list) else "tuple": [encoded(item) for item in value]}
    if isinstance(value, slice):
        return {"slice": [encoded(value.start), encoded(value.stop), encoded(value.step)]}
    if value is Ellipsis:
        return {"ellipsis": []}
    if isinstance(value, numpy.ndarray):
        data = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode()
        return {"tensor": [str(value.dtype), list(value.shape), data]}
    if isinstance(value, type(plimsoll.float32)):
        return {"name": str(value).removeprefix("plimsoll.")}
    raise TypeError(f"{type(value).__name__} cannot be written down")


def decoded(value: Any, tensor: Callable[[numpy.ndarray], Any]) -> Any:
    """The value again, with tensors made of arrays."""
    if not isinstance(value, dict):
        return value
    ((kind, parts),) = value.items()
    if kind in ("list", "tuple"):
        items = [decoded(item, tensor) for item in parts]
        return items if kind == "list" else tuple(items)
    if kind == "slice":
        return slice(*parts)
    if kind == "ellipsis":
        return Ellipsis
    if kind == "name":
        return getattr(plimsoll, parts)
    dtype, shape, data = parts
    return tensor(numpy.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy())


def leaves_of(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [value]


def different(wanted: Any, found: Any) -> str | None:
    """What differs, in words."""
    if isinstance(wanted, numpy.ndarray):
        here = found.detach().numpy()
        if here.shape != wanted.shape or here.dtype != wanted.dtype:
            return f"{here.dtype}{list(here.shape)}, PyTorch's {wanted.dtype}{list(wanted.shape)}"
        relative, absolute = TOLERANCES.get(str(wanted.dtype), (0.0, 0.0))
        close = numpy.isclose(here, wanted, rtol=relative, atol=absolute, equal_nan=wanted.dtype.kind == "f")
        return None if close.all() else f"{here[~close].flat[0]}, PyTorch's {wanted[~close].flat[0]}"
    return None if wanted == found else f"{found}, PyTorch's {wanted}"


def replay(case: dict[str, Any]) -> str | None:
    """Calls Plimsoll as the case says; what differs from PyTorch's answer, in words."""
    made: list[Any] = []

    def tensor(array: numpy.ndarray) -> Any:
        made.append(plimsoll.from_numpy(array).clone())
        if len(made) - 1 in case["leaves"]:
            made[-1].requires_grad_()
        return made[-1]

    args, kwargs = decoded(case["values"][0], tensor), {name: decoded(value, tensor) for name, value in case["values"][1].items()}
    function = functools.reduce(getattr, case["call"].split("."), plimsoll)
    results = leaves_of(function(*args, **kwargs))
    wanted = leaves_of(decoded(case["results"], lambda array: array))
    if len(results) != len(wanted):
        return f"{len(results)} results, PyTorch gives {len(wanted)}"
    for want, found in zip(wanted, results, strict=True):
        if words := different(want, found):
            return words
    if not case["leaves"]:
        return None
    outputs = [result for result in results if isinstance(result, plimsoll.Tensor) and result.requires_grad]
    cotangents = [decoded(cotangent, plimsoll.from_numpy) for cotangent in case["cotangents"]]
    inputs = [made[place] for place in case["leaves"]]
    gradients = plimsoll.grad(outputs, inputs, cotangents, allow_unused=True)
    for want, found in zip(case["gradients"], gradients, strict=True):
        want = decoded(want, lambda array: array)
        if (want is None) != (found is None):
            want, found = numpy.zeros([]) if want is None else want, numpy.zeros([]) if found is None else found.detach().numpy()
            if numpy.any(want) or numpy.any(found):
                return "a gradient is missing, or is one too many"
        elif want is not None and (words := different(want, found)):
            return f"gradient: {words}"
    return None
