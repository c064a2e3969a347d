"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._plimsoll import Tensor, empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._sizes import Ints, both_ends, pair, single, triple
from .module import Module
from . import _elsewhere

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of all dimensions share."""

    in_channels: int
    out_channels: int
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__()
        self._check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            ends = [0] * (2 * len(kernel_size))
            if padding == "same":
                for at, (step, size) in enumerate(zip(reversed(dilation), reversed(kernel_size))):
                    whole = step * (size - 1)
                    ends[2 * at], ends[2 * at + 1] = whole // 2, whole - whole // 2
            self._reversed_padding_repeated_twice: Any = ends
        else:
            self._reversed_padding_repeated_twice = both_ends(padding)
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @staticmethod
    def _check(inputs: int, outputs: int, groups: int, padding: Any, stride: Any, mode: str) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if inputs % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if outputs % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{mode}'")

    def reset_parameters(self) -> None:
        """Draws the first values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _convolved(self, function: Callable[..., Tensor], input: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, list(self._reversed_padding_repeated_twice), mode=self.padding_mode)
            padding = 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        told = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros = (0,) * len(self.kernel_size)
        if self.padding != zeros:
            told += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            told += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            told += f", output_padding={self.output_padding}"
        if self.groups != 1:
            told += f", groups={self.groups}"
        if self.bias is None:
            told += ", bias=False"
        if self.padding_mode != "zeros":
            told += f", padding_mode={self.padding_mode}"
        return told


class _Conv(_ConvNd):
    """The constructor of all convolutions that are not transposed. `_each` makes one number one for each dimension."""

    _each: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = self._each
        around = padding if isinstance(padding, str) else each(padding)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), around, each(dilation), False, each(0), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip


class Conv1d(_Conv):
    """A convolution over one dimension."""

    _each = staticmethod(single)

    def forward(self, input: Tensor) -> Tensor:
        return self._convolved(F.conv1d, input)


class Conv2d(_Conv):
    """A convolution over two dimensions."""

    _each = staticmethod(pair)

    def forward(self, input: Tensor) -> Tensor:
        return self._convolved(F.conv2d, input)


class Conv3d(_Conv):
    """A convolution over three dimensions."""

    _each = staticmethod(triple)

    def forward(self, input: Tensor) -> Tensor:
        return self._convolved(F.conv3d, input)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions of all dimensions share."""

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What makes the result as large as asked."""
        if output_size is None:
            return self.output_padding
        dims = len(self.kernel_size)
        has_batch = input.dim() == dims + 2
        ahead = 2 if has_batch else 1
        wanted = list(output_size)
        if len(wanted) == ahead + dims:
            wanted = wanted[ahead:]
        if len(wanted) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {ahead + dims} elements "
                f"(got {len(wanted)})"
            )
        least = [
            (input.size(at + ahead) - 1) * self.stride[at]
            - 2 * self.padding[at]
            + self.dilation[at] * (self.kernel_size[at] - 1)
            + 1
            for at in range(dims)
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ValueError(
                f"requested an output size of {tuple(wanted)}, but valid sizes range from {least} to {most} "
                f"(for an input of {tuple(input.shape[2:])})"
            )
        return tuple(size - low for size, low in zip(wanted, least))

    def _convolved_back(
        self, function: Callable[..., Tensor], input: Tensor, output_size: Sequence[int] | None
    ) -> Tensor:
        more = self._output_padding(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class _ConvTranspose(_ConvTransposeNd):
    """The constructor of all transposed convolutions. `_each` as in `_Conv`."""

    _each: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = self._each
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
            each(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over one dimension."""

    _each = staticmethod(single)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolved_back(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over two dimensions."""

    _each = staticmethod(pair)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolved_back(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over three dimensions."""

    _each = staticmethod(triple)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolved_back(F.conv_transpose3d, input, output_size)


#: What PyTorch has in this file, and this package in others.
__getattr__ = _elsewhere.of(__name__)
