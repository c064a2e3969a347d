"""The LSTM whose states are projected, of smaller operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._plimsoll import Tensor, cat, stack
from .. import functional as F


def lstm(
    input: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`lstm` with a fifth weight for each layer and direction, or a third without biases: the projection."""
    steps = input.transpose(0, 1) if batch_first else input
    directions, each = 2 if bidirectional else 1, 5 if has_biases else 3
    hidden, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            own = list(weights[at * each : (at + 1) * each])
            output, last, cell = _layer(steps, states[0][at], states[1][at], own, has_biases, direction == 1)
            outputs.append(output)
            hidden.append(last)
            cells.append(cell)
        steps = outputs[0] if directions == 1 else cat(outputs, -1)
        if dropout > 0 and training and layer < num_layers - 1:
            steps = F.dropout(steps, dropout, True)
    return steps.transpose(0, 1) if batch_first else steps, stack(hidden), stack(cells)


def _layer(
    steps: Tensor, hidden: Tensor, cell: Tensor, weights: list[Any], has_biases: bool, backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    of_input, of_state, *biases, projection = weights
    of_inputs = F.linear(steps, of_input, biases[0] if has_biases else None)
    bias = biases[1] if has_biases else None
    outputs: list[Any] = [None] * steps.size(0)
    places = range(steps.size(0))
    for at in reversed(places) if backwards else places:
        gates = of_inputs[at] + F.linear(hidden, of_state, bias)
        keep_in, forget, new, keep_out = gates.chunk(4, -1)
        cell = forget.sigmoid() * cell + keep_in.sigmoid() * new.tanh()
        hidden = F.linear(keep_out.sigmoid() * cell.tanh(), projection)
        outputs[at] = hidden
    return stack(outputs), hidden, cell
