"""Batches on a device before they are needed: copied on streams of their own while the device computes on an earlier batch.

The copies are Rust's (`plimsoll-data`, `prefetch.rs`); this file takes the tensors out of a batch and puts them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ._collate import replaced


class _Place:
    """Where a tensor was in a batch."""


_PLACE = _Place()


class Prefetcher:
    """Brings the tensors of batches to a device ahead of their use: `for x, y in Prefetcher(loader, "cuda"): ...`.

    With two buffers one batch is computed on and one is on its way; with three the host may run ahead as well; with one there is no
    copy ahead. There are never more batches on the device than buffers, as long as the loop keeps none. Without `buffers` there are
    as many as the configuration's `prefetch_buffers` says."""

    def __init__(self, batches: Iterable[Any], device: Any, buffers: int | None = None) -> None:
        # Not a generator, whose frame would keep a batch of the host until the next one is asked for.
        self._own = _plimsoll._Prefetcher(map(_parts, batches), device, buffers)

    def __iter__(self) -> Prefetcher:
        return self

    def __next__(self) -> Any:
        tensors, rest = next(self._own)
        there = iter(tensors)
        return replaced(rest, lambda part: part is _PLACE, lambda _: next(there))


def _parts(batch: Any) -> tuple[list[Tensor], Any]:
    """A batch as its tensors and the rest."""
    tensors: list[Tensor] = []

    def take(tensor: Tensor) -> _Place:
        tensors.append(tensor)
        return _PLACE

    rest = replaced(batch, lambda part: isinstance(part, Tensor), take)
    return tensors, rest
