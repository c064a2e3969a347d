"""Sequences of different lengths in one tensor: padded, or packed one time step after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ... import _plimsoll
from ..._plimsoll import Tensor


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The order that undoes another."""
    if permutation is None:
        return None
    places = _plimsoll.arange(permutation.numel(), dtype=permutation.dtype, device=permutation.device)
    return _plimsoll.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(_Packed):
    """Sequences one time step after another: `data` holds all elements, `batch_sizes` how many sequences have each step,
    and the indices how sequences were sorted by length."""

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if isinstance(data, (list, tuple)) and len(data) == 2:
                data, batch_sizes = data
            else:
                raise ValueError("PackedSequence needs data and batch_sizes")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequence in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves and casts the data; indices go to the same device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        if kwargs.get("copy"):
            raise RuntimeError(".to() does not accept copy argument")
        order, back = (None if index is None else index.to(data.device) for index in self[2:])
        return type(self)(data, self.batch_sizes, order, back)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to a GPU, as `to` with the same arguments does."""
        moved = self.to(*args, **kwargs) if args or kwargs else self
        return moved if moved.is_cuda else self.to(*args, **{"device": "cuda", **kwargs})

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to the CPU, as `to` with the same arguments does."""
        moved = self.to(*args, **kwargs) if args or kwargs else self
        return moved if moved.data.device.type == "cpu" else self.to(*args, **{"device": "cpu", **kwargs})

    def float(self) -> PackedSequence:
        """Casts to float32."""
        return self.to(_plimsoll.float32)

    def double(self) -> PackedSequence:
        """Casts to float64."""
        return self.to(_plimsoll.float64)

    def half(self) -> PackedSequence:
        """Casts to float16."""
        return self.to(_plimsoll.float16)

    def long(self) -> PackedSequence:
        """Casts to int64."""
        return self.to(_plimsoll.int64)

    def int(self) -> PackedSequence:
        """Casts to int32."""
        return self.to(_plimsoll.int32)

    def short(self) -> PackedSequence:
        """Casts to int16."""
        return self.to(_plimsoll.int16)

    def char(self) -> PackedSequence:
        """Casts to int8."""
        return self.to(_plimsoll.int8)

    def byte(self) -> PackedSequence:
        """Casts to uint8."""
        return self.to(_plimsoll.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data is in memory that a GPU can read."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> PackedSequence:
        """A copy in memory that a GPU can read."""
        return type(self)(self.data.pin_memory(), *self[1:])


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences of these lengths; with `enforce_sorted` the longest must come first."""
    if isinstance(lengths, Tensor) and lengths.device.type != "cpu":
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got a tensor on " + str(lengths.device))
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if isinstance(lengths, Tensor) and lengths.dim() != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D cpu tensor")
    sizes = [int(length) for length in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    order = None
    if not enforce_sorted:
        # Stable, so that equal lengths keep their order.
        places = sorted(range(len(sizes)), key=lambda at: -sizes[at])
        order = _plimsoll.tensor(places, dtype=_plimsoll.int64, device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
        sizes = [sizes[at] for at in places]
    steps = input.transpose(0, 1) if batch_first else input
    _check_lengths(steps, sizes)
    batch_sizes, pieces, ends = [], [], sorted(set(sizes))
    begin = 0
    # Steps that the same sequences have are one piece.
    for end in ends:
        alive = sum(size >= end for size in sizes)
        piece = steps[begin:end, :alive]
        pieces.append(piece.reshape(((end - begin) * alive, *steps.shape[2:])))
        batch_sizes += [alive] * (end - begin)
        begin = end
    data = pieces[0] if len(pieces) == 1 else _plimsoll.cat(pieces)
    return PackedSequence(data, _plimsoll.tensor(batch_sizes, dtype=_plimsoll.int64), order, None)


def _check_lengths(steps: Tensor, sizes: list[int]) -> None:
    if len(sizes) != steps.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={steps.size(1)})")  # fmt: skip
    if any(size <= 0 for size in sizes):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(later > former for former, later in zip(sizes, sizes[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if sizes[0] > steps.size(0):
        raise RuntimeError(f"pack_padded_sequence: a length is {sizes[0]}, but the input has {steps.size(0)} steps")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Padded sequences and their lengths, in the order they had before packing."""
    data, batch_sizes, _, back = sequence
    counts = batch_sizes.tolist()
    longest = len(counts)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    if not counts:
        raise RuntimeError("pad_packed_sequence: the packed sequence is empty")
    batch = counts[0]
    rows, at = [], 0
    for count in counts:
        row = data[at : at + count]
        if count < batch:
            fill = _plimsoll.full((batch - count, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
            row = _plimsoll.cat([row, fill])
        rows.append(row)
        at += count
    padded = _plimsoll.stack(rows)
    if longest > len(counts):
        shape = (longest - len(counts), batch, *data.shape[1:])
        fill = _plimsoll.full(shape, padding_value, dtype=data.dtype, device=data.device)
        padded = _plimsoll.cat([padded, fill])
    sizes = [sum(count > at for count in counts) for at in range(batch)]
    lengths = _plimsoll.tensor(sizes, dtype=_plimsoll.int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    if back is not None:
        padded = padded.index_select(0 if batch_first else 1, back)
        lengths = lengths[back.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences side by side, the shorter ones with a value after or before them."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: " + str(type(sequences))
        )
    given = list(sequences)
    if not given:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f'Expected padding_side to be one of left or right, but got "{padding_side}".')
    for at, one in enumerate(given):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(one).__name__}")
    longest = max(one.size(0) for one in given)
    padded = []
    for one in given:
        if one.size(0) < longest:
            shape = (longest - one.size(0), *one.shape[1:])
            fill = _plimsoll.full(shape, padding_value, dtype=one.dtype, device=one.device)
            one = _plimsoll.cat([one, fill] if padding_side == "right" else [fill, one])
        padded.append(one)
    return _plimsoll.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Sequences without what pads them, each in memory of its own."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    # A mask and no slice: lengths may be fractions, and one below 0 would count from the end.
    places = _plimsoll.arange(rows.shape[1], device=lengths.device)
    return [row[places < length] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences; with `enforce_sorted` the longest must come first."""
    lengths = [one.size(0) for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
