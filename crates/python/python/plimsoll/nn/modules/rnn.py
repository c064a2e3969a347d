"""Recurrent networks: RNN, LSTM and GRU over sequences, packed ones too."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor, empty
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from . import _projected
from ._wide import in_float32
from .module import Module
from . import _elsewhere

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """A tensor in another order along one dimension."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What all recurrent networks share: weights of each layer and direction, and states."""

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = self._checked_dropout(dropout, num_layers)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_sizes()
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                self._add_layer(layer, suffix, device, dtype)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @staticmethod
    def _checked_dropout(dropout: Any, num_layers: int) -> float:
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=4,
            )
        return float(dropout)

    def _check_sizes(self) -> None:
        for name in ("input_size", "hidden_size"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(f"{name} should be of type int, got: {type(getattr(self, name)).__name__}")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_layer(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        rows = _GATES[self.mode] * self.hidden_size
        state = self.proj_size or self.hidden_size
        columns = self.input_size if layer == 0 else state * (2 if self.bidirectional else 1)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns), "weight_hh": (rows, state)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            setattr(self, names[-1], Parameter(empty(shape, device=device, dtype=dtype)))
        self._all_weights.append(names)

    @property
    def _flat_weights(self) -> list[Any]:
        own = self._parameters
        return [own[name] if name in own else getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: weights need not lie side by side here."""

    def reset_parameters(self) -> None:
        """Draws the first values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses an input of another dtype or size."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not _plimsoll.is_autocast_enabled(input.device.type):
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                             f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})")  # fmt: skip
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_sizes(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a state."""
        return self._state_sizes(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuses a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuses arguments of other shapes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state in another order of the batch."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    def _options(self) -> tuple[Any, ...]:
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def _check_dims(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")

    def _zeros(self, input: Tensor, sizes: tuple[int, ...]) -> Tensor:
        return _plimsoll.zeros(sizes, dtype=input.dtype, device=input.device)

    def extra_repr(self) -> str:
        told = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            told += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            told += f", num_layers={self.num_layers}"
        if self.bias is not True:
            told += f", bias={self.bias}"
        if self.batch_first is not False:
            told += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            told += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            told += f", bidirectional={self.bidirectional}"
        return told


class _OneState(RNNBase):
    """A network whose state is one tensor."""

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        self._check_dims(input)
        batched = input.dim() == 3
        if hx is not None and hx.dim() != input.dim():
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {input.dim()}-D but got {hx.dim()}-D tensor")
        if not batched:
            at = 0 if self.batch_first else 1
            input, hx = input.unsqueeze(at), None if hx is None else hx.unsqueeze(1)
        if hx is None:
            hx = self._zeros(input, self.get_expected_hidden_size(input, None))
        self.check_forward_args(input, hx, None)
        output, state = in_float32(self._function(), input, hx, self._flat_weights, *self._options(), self.batch_first)
        return (output, state) if batched else (output.squeeze(at), state.squeeze(1))

    def _packed(self, input: PackedSequence, hx: Tensor | None) -> tuple[Any, Tensor]:
        data, sizes, order, back = input
        if hx is None:
            hx = self._zeros(data, self.get_expected_hidden_size(data, sizes))
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, sizes)
        output, state = in_float32(self._function(), data, sizes, hx, self._flat_weights, *self._options())
        return PackedSequence(output, sizes, order, back), self.permute_hidden(state, back)

    def _function(self) -> Any:
        raise NotImplementedError


class RNN(_OneState):
    """Layers of `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with ReLU."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int = 0,
    ) -> None:
        if proj_size:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity

    def _function(self) -> Any:
        return _plimsoll.rnn_tanh if self.mode == "RNN_TANH" else _plimsoll.rnn_relu


class GRU(_OneState):
    """Layers of gated recurrent units."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int = 0,
    ) -> None:
        if proj_size:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )

    def _function(self) -> Any:
        return _plimsoll.gru


class LSTM(RNNBase):
    """Layers of long short-term memory, whose states may be projected to `proj_size`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a cell's state, which is not projected."""
        return self._state_sizes(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _first_states(self, input: Tensor, sizes: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden = self._zeros(input, self.get_expected_hidden_size(input, sizes))
        return hidden, self._zeros(input, self.get_expected_cell_size(input, sizes))

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        self._check_dims(input)
        batched = input.dim() == 3
        if hx is not None and (hx[0].dim() != input.dim() or hx[1].dim() != input.dim()):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {input.dim()}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        if not batched:
            at = 0 if self.batch_first else 1
            input = input.unsqueeze(at)
            hx = None if hx is None else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        if hx is None:
            hx = self._first_states(input, None)
        self.check_forward_args(input, hx, None)
        function: Any = _projected.lstm if self.proj_size else _plimsoll.lstm
        output, hidden, cell = in_float32(function, input, hx, self._flat_weights, *self._options(), self.batch_first)
        if not batched:
            return output.squeeze(at), (hidden.squeeze(1), cell.squeeze(1))
        return output, (hidden, cell)

    def _packed(self, input: PackedSequence, hx: Any) -> tuple[Any, tuple[Tensor, Tensor]]:
        data, sizes, order, back = input
        hx = self._first_states(data, sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, sizes)
        function: Any = _projected.packed_lstm if self.proj_size else _plimsoll.lstm
        output, hidden, cell = in_float32(function, data, sizes, hx, self._flat_weights, *self._options())
        return PackedSequence(output, sizes, order, back), self.permute_hidden((hidden, cell), back)


#: What PyTorch has in this file, and this package in others.
__getattr__ = _elsewhere.of(__name__)
