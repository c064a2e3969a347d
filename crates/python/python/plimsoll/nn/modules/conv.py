"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from ..._plimsoll import Tensor, empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._sizes import both_ends, pair, single, triple
from .module import Module

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
        if self.weight.numel() == 0:
            return
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _convolved(self, function: Any, input: Tensor) -> Tensor:
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


def _conv(name: str, times: Any, function: Any, dims: int) -> type[_ConvNd]:
    def __init__(
        self: Any,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _ConvNd.__init__(
            self, in_channels, out_channels, times(kernel_size), times(stride),
            padding if isinstance(padding, str) else times(padding), times(dilation), False, (0,) * dims, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self: Any, input: Tensor) -> Tensor:
        return self._convolved(function, input)

    body = {"__init__": __init__, "forward": forward, "__module__": __name__, "_dims": dims}
    body["__doc__"] = f"A convolution over {dims} dimension{'s' * (dims > 1)}."
    return type(name, (_ConvNd,), body)


Conv1d = _conv("Conv1d", single, F.conv1d, 1)
Conv2d = _conv("Conv2d", pair, F.conv2d, 2)
Conv3d = _conv("Conv3d", triple, F.conv3d, 3)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions of all dimensions share."""

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
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
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} "
                f"(for an input of {tuple(input.shape[2:])})"
            )
        return tuple(size - low for size, low in zip(wanted, least))


def _conv_transpose(name: str, times: Any, function: Any, dims: int) -> type[_ConvTransposeNd]:
    def __init__(
        self: Any,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        _ConvNd.__init__(
            self, in_channels, out_channels, times(kernel_size), times(stride), times(padding), times(dilation), True,
            times(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self: Any, input: Tensor, output_size: Any = None) -> Tensor:
        more = self._output_padding(input, output_size)
        return function(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )

    body = {"__init__": __init__, "forward": forward, "__module__": __name__, "_dims": dims}
    body["__doc__"] = f"A transposed convolution over {dims} dimension{'s' * (dims > 1)}."
    return type(name, (_ConvTransposeNd,), body)


ConvTranspose1d = _conv_transpose("ConvTranspose1d", single, F.conv_transpose1d, 1)
ConvTranspose2d = _conv_transpose("ConvTranspose2d", pair, F.conv_transpose2d, 2)
ConvTranspose3d = _conv_transpose("ConvTranspose3d", triple, F.conv_transpose3d, 3)
