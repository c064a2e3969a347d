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
    length, batch = steps.shape[:2]
    options = (has_biases, num_layers, dropout, training, bidirectional)
    rows, hidden, cells = _network(steps.reshape(length * batch, -1), [batch] * length, states, weights, *options)
    output = rows.reshape(length, batch, -1)
    return output.transpose(0, 1) if batch_first else output, hidden, cells


def packed_lstm(
    data: Tensor, batch_sizes: Tensor, states: Sequence[Tensor], weights: Sequence[Any], *options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """The same over packed sequences: the rows of each step one after another, as many as `batch_sizes` says."""
    return _network(data, batch_sizes.tolist(), states, weights, *options)


def _network(
    rows: Tensor,
    counts: list[int],
    states: Sequence[Tensor],
    weights: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    directions, each = 2 if bidirectional else 1, 5 if has_biases else 3
    hidden, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            own = _Direction(list(weights[at * each : (at + 1) * each]), has_biases)
            run = own.backwards if direction == 1 else own.forwards
            output, last, cell = run(rows, counts, states[0][at], states[1][at])
            outputs.append(output)
            hidden.append(last)
            cells.append(cell)
        rows = outputs[0] if directions == 1 else cat(outputs, -1)
        if dropout > 0 and training and layer < num_layers - 1:
            rows = F.dropout(rows, dropout, True)
    return rows, stack(hidden), stack(cells)


class _Direction:
    """One direction of one layer."""

    def __init__(self, weights: list[Any], has_biases: bool) -> None:
        self.of_input, self.of_state, *biases, self.projection = weights
        self.biases = biases if has_biases else [None, None]

    def step(self, of_input: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        gates = of_input + F.linear(hidden, self.of_state, self.biases[1])
        keep_in, forget, new, keep_out = gates.chunk(4, -1)
        cell = forget.sigmoid() * cell + keep_in.sigmoid() * new.tanh()
        return F.linear(keep_out.sigmoid() * cell.tanh(), self.projection), cell

    def forwards(
        self, rows: Tensor, counts: list[int], hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From the first step on. Sequences end one after another, the last ones first."""
        of_inputs = F.linear(rows, self.of_input, self.biases[0])
        outputs, at = [], 0
        ended: tuple[list[Tensor], list[Tensor]] = ([], [])
        for count in counts:
            if count < hidden.size(0):
                ended[0].insert(0, hidden[count:])
                ended[1].insert(0, cell[count:])
                hidden, cell = hidden[:count], cell[:count]
            hidden, cell = self.step(of_inputs[at : at + count], hidden, cell)
            outputs.append(hidden)
            at += count
        return cat(outputs), cat([hidden, *ended[0]]), cat([cell, *ended[1]])

    def backwards(
        self, rows: Tensor, counts: list[int], first_hidden: Tensor, first_cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From the last step on. Shorter sequences join in at their ends."""
        of_inputs = F.linear(rows, self.of_input, self.biases[0])
        outputs: list[Tensor] = []
        end = sum(counts)
        hidden, cell = first_hidden[: counts[-1]], first_cell[: counts[-1]]
        for count in reversed(counts):
            before = hidden.size(0)
            if count > before:
                hidden = cat([hidden, first_hidden[before:count]])
                cell = cat([cell, first_cell[before:count]])
            hidden, cell = self.step(of_inputs[end - count : end], hidden, cell)
            outputs.insert(0, hidden)
            end -= count
        return cat(outputs), hidden, cell
