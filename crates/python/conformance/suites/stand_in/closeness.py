"""Whether two values are equal in the sense of PyTorch's test cases: tensors by default tolerances of their dtypes, numbers and
containers by their elements. Values are read out and compared by NumPy, so that no operation under test judges itself."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch

# Relative and absolute, by the dtype's name: what `torch.testing.assert_close` documents.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
NUMBERS = (int, float, complex, np.number, enum.Enum)


class Comparison:
    """One call of `assertEqual`: its options, applied to pairs of values, down to the elements of containers."""

    def __init__(self, rtol: float | None, atol: float | None, floors: tuple[float, float], equal_nan: bool, **exact: bool) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError("rtol and atol must both be given or both be left out")
        self.given = None if rtol is None else (rtol, atol)
        self.floors = floors
        self.equal_nan = equal_nan
        self.exact = exact

    def differ(self, x: Any, y: Any) -> str | None:
        """In words, or `None` if they are equal."""
        if x is None or y is None:
            return None if x is y else f"{short(x)} is not {short(y)}"
        if isinstance(x, (bool, np.bool_)) or isinstance(y, (bool, np.bool_)):
            return self._booleans(x, y)
        if isinstance(x, NUMBERS) or isinstance(y, NUMBERS):
            found = self._numbers(x, y)
            if found is not NotImplemented:
                return found
        if isinstance(x, (torch.Tensor, np.ndarray)) and isinstance(y, (torch.Tensor, np.ndarray)):
            return self._tensors(tensor(x), tensor(y))
        if isinstance(x, str) or isinstance(y, str) or isinstance(x, Set) or isinstance(y, Set):
            return None if x == y else f"{short(x)} is not equal to {short(y)}"
        if is_sequence(x) and is_sequence(y):
            if len(x) != len(y):
                return f"lengths differ: {len(x)} and {len(y)}"
            return self._elements((f"[{place}]", a, b) for place, (a, b) in enumerate(zip(x, y, strict=True)))
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            if set(x) != set(y):
                return f"keys differ: {short(list(x))} and {short(list(y))}"
            return self._elements((f"[{key!r}]", x[key], y[key]) for key in x)
        return None if x == y else f"{short(x)} is not equal to {short(y)}"

    def _elements(self, pairs: Any) -> str | None:
        for place, a, b in pairs:
            if found := self.differ(a, b):
                return f"{found}, at {place}"
        return None

    def _booleans(self, x: Any, y: Any) -> str | None:
        values = [value.item() if isinstance(value, (torch.Tensor, np.ndarray, np.generic)) else value for value in (x, y)]
        if not all(isinstance(value, (bool, int, float, complex)) for value in values):
            return f"{short(x)} cannot be compared with {short(y)}"
        return None if bool(values[0]) == bool(values[1]) else f"booleans differ: {values[0]} and {values[1]}"

    def _numbers(self, x: Any, y: Any) -> Any:
        values = []
        for value in (x, y):
            if isinstance(value, enum.Enum):
                value = int(value)
            if isinstance(value, (torch.Tensor, np.ndarray)):
                count = value.numel() if isinstance(value, torch.Tensor) else value.size
                if count != 1:
                    return f"only one element can be compared with a number, not {count}"
            if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
                value = value.item()
            if not isinstance(value, (int, float, complex)):
                return NotImplemented
            values.append(value)
        x, y = values
        whole = all(isinstance(value, int) for value in values)
        rtol, atol = self._tolerances([] if whole else ["float32"])
        if x == y or (self.equal_nan and x != x and y != y) or abs(x - y) <= atol + rtol * abs(y) < np.inf:
            return None
        return f"numbers differ: {x} and {y}"

    def _tolerances(self, dtypes: list[str]) -> tuple[float, float]:
        pairs = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes] or [(0.0, 0.0)]
        rtol, atol = self.given or (max(pair[0] for pair in pairs), max(pair[1] for pair in pairs))
        return max(rtol, self.floors[0]), max(atol, self.floors[1])

    def _tensors(self, x: Any, y: Any) -> str | None:
        if tuple(x.shape) != tuple(y.shape):
            return f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}"
        if self.exact["device"] and x.device != y.device:
            return f"devices differ: {x.device} and {y.device}"
        if self.exact["dtype"] and x.dtype != y.dtype:
            return f"dtypes differ: {x.dtype} and {y.dtype}"
        if self.exact["stride"] and x.stride() != y.stride():
            return f"strides differ: {x.stride()} and {y.stride()}"
        rtol, atol = self._tolerances([name(x.dtype), name(y.dtype)])
        a, b = array(x), array(y)
        with np.errstate(all="ignore"):
            near = (a == b) | ((np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b))
            if self.equal_nan:
                near |= (a != a) & (b != b)
        if near.all():
            return None
        place = tuple(int(i) for i in np.argwhere(~near)[0])
        return f"{int((~near).sum())} of {near.size} elements differ, the first at {place}: {a[place]} and {b[place]}"


def is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) or isinstance(value, (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ParameterList))


def name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def tensor(value: Any) -> Any:
    return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value


def array(value: Any) -> np.ndarray:
    """The values in NumPy's widest dtype of the kind."""
    value = value.detach()
    if getattr(value, "layout", torch.strided) != torch.strided:
        value = value.to_dense()
    if name(value.dtype).startswith("complex"):
        return value.to(torch.complex128).resolve_conj().resolve_neg().numpy()
    if value.dtype.is_floating_point:
        return value.to(torch.float64).resolve_neg().numpy()
    return value.to(torch.int64).numpy()


def short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else text[:117] + "..."
