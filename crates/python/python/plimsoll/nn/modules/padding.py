"""Padding: values put around a tensor."""

from __future__ import annotations

from ..._plimsoll import Tensor
from .. import functional as F
from ._sizes import Ints, pair, quadruple, sextuple
from .module import Module


class _PadNd(Module):
    """What all paddings share: sizes before and after each dimension, the last dimension first."""

    padding: tuple[int, ...]
    _mode: str

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Padding with one value."""

    value: float

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_PadNd):
    """Padding with values from the other end."""

    _mode = "circular"
    _dims: int

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


class _ReflectionPadNd(_PadNd):
    """Padding with values mirrored at the border, which itself stands once."""

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Padding with the values at the border."""

    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """Pads one dimension with values from the other end."""

    _dims = 1

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = pair(padding)


class CircularPad2d(_CircularPadNd):
    """Pads two dimensions with values from the other end."""

    _dims = 2

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = quadruple(padding)


class CircularPad3d(_CircularPadNd):
    """Pads three dimensions with values from the other end."""

    _dims = 3

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = sextuple(padding)


class ConstantPad1d(_ConstantPadNd):
    """Pads one dimension with one value."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__()
        self.padding = pair(padding)
        self.value = value


class ConstantPad2d(_ConstantPadNd):
    """Pads two dimensions with one value."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__()
        self.padding = quadruple(padding)
        self.value = value


class ConstantPad3d(_ConstantPadNd):
    """Pads three dimensions with one value."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__()
        self.padding = sextuple(padding)
        self.value = value


class ReflectionPad1d(_ReflectionPadNd):
    """Pads one dimension with values mirrored at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = pair(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads two dimensions with values mirrored at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = quadruple(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads three dimensions with values mirrored at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = sextuple(padding)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads one dimension with the values at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = pair(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads two dimensions with the values at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = quadruple(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads three dimensions with the values at the border."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = sextuple(padding)


class ZeroPad1d(ConstantPad1d):
    """Pads one dimension with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads two dimensions with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads three dimensions with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
