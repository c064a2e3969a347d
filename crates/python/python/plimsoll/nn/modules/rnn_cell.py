"""One step of a recurrent network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor, empty
from .. import init
from ..parameter import Parameter
from ._wide import in_float32
from .module import Module


class RNNCellBase(Module):
    """What all cells share: the weights of input and state."""

    input_size: int
    hidden_size: int
    bias: bool
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the first values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, input: Tensor, hidden: Tensor | None) -> None:
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if hidden is not None and hidden.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {hidden.dim()}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return _plimsoll.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _one_state(self, function: Callable[..., Tensor], input: Tensor, hx: Tensor | None) -> Any:
        self._check(input, hx)
        if input.dim() == 2:
            hx = self._zeros(input) if hx is None else hx
            return in_float32(function, input, hx, *self._weights())
        input = input.unsqueeze(0)
        hx = self._zeros(input) if hx is None else hx.unsqueeze(0)
        return in_float32(function, input, hx, *self._weights()).squeeze(0)

    def extra_repr(self) -> str:
        told = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            told += f", bias={self.bias}"
        return told


class RNNCell(RNNCellBase):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with ReLU."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        functions = {"tanh": _plimsoll.rnn_tanh_cell, "relu": _plimsoll.rnn_relu_cell}
        if self.nonlinearity not in functions:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one_state(functions[self.nonlinearity], input, hx)

    def extra_repr(self) -> str:
        told = super().extra_repr()
        return told if self.nonlinearity == "tanh" else f"{told}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, None)
        if hx is not None and not isinstance(hx, (tuple, list)):
            raise TypeError(f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type(hx).__name__}")
        for at, state in enumerate(hx or ()):
            if state.dim() not in (1, 2):
                raise ValueError(f"LSTMCell: Expected hx[{at}] to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        hidden, cell = in_float32(_plimsoll.lstm_cell, input, hx, *self._weights())
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        return self._one_state(_plimsoll.gru_cell, input, hx)
