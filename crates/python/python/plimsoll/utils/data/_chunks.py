"""Inputs larger than a device: a tensor taken through a function chunk by chunk, and batches through a model without gradients.

Both give cached memory back now and then if they are told to. What a call does not say, the configuration says: `chunk_size`,
`prefetch_buffers`, `cleanup_every`, `final_cleanup`. The same for Rust is in `plimsoll-data`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _plimsoll
from ..._modes import no_grad
from ..._plimsoll import Tensor
from ._prefetch import Prefetcher


def _refused(why: str) -> Exception:
    return _plimsoll.InvalidArgumentError(f"process_in_chunks: {why}")


class _Cleanup:
    """When the cached memory of a device is given back."""

    def __init__(self, device: Any, every: int | None, finally_: bool | None) -> None:
        _, usual_every, usual_end = _plimsoll._evaluation_settings()
        self._device = device
        self._every = usual_every if every is None else every
        self._at_end = usual_end if finally_ is None else finally_
        self._done = 0

    def after_one(self) -> None:
        self._done += 1
        if self._every and self._done % self._every == 0:
            _plimsoll.empty_cache(self._device)

    def at_the_end(self) -> None:
        if self._at_end:
            _plimsoll.empty_cache(self._device)


class _Gathered:
    """What was computed so far, in one tensor that is allocated once."""

    def __init__(self, rows: int, device: Any) -> None:
        self._rows = rows
        self._device = device
        self._at = 0
        self.all: Tensor | None = None

    def add(self, result: Tensor, rows: int) -> None:
        """Adds the result of a chunk of `rows`."""
        at = self._at
        if result.dim() == 0 or result.shape[0] != rows:
            raise _refused(
                f"the function made a result of shape {list(result.shape)} of the {rows} rows from {at} on; it must make one row "
                "of result for each row"
            )
        self._at += rows
        if rows == self._rows:
            self.all = result.to(self._device)
            return
        if self.all is None:
            self.all = _plimsoll.empty((self._rows, *result.shape[1:]), dtype=result.dtype, device=self._device)
        if self.all.shape[1:] != result.shape[1:] or self.all.dtype != result.dtype:
            raise _refused(
                f"the result for the rows from {at} on has shape {list(result.shape)} and dtype {result.dtype}, the ones before "
                f"{list(self.all.shape)} and {self.all.dtype}"
            )
        self.all.narrow(0, at, rows).copy_(result)


def process_in_chunks(
    input: Tensor,
    function: Callable[[Tensor], Tensor],
    chunk_size: int | None = None,
    *,
    device: Any = None,
    results_on: Any = None,
    prefetch_buffers: int | None = None,
    cleanup_every: int | None = None,
    final_cleanup: bool | None = None,
) -> Tensor:
    """The results of `function` on an input's rows, `chunk_size` at a time, joined in order. With a `device`, each chunk is copied
    there (the next one while `function` runs on this one), and its result comes back to where the results are gathered: where the
    input is, or `results_on`. The device has `prefetch_buffers` chunks and what `function` makes of one.

    `function` gives one row of result for each row, and is not recorded for gradients, which would keep every chunk's intermediate
    results. `cleanup_every` gives the device's cached memory back after every so many chunks (0 is never), `final_cleanup` at the
    end."""
    if input.dim() == 0:
        raise _refused("the input is a number and has no rows; unsqueeze it")
    rows = input.shape[0]
    chunk = _plimsoll._evaluation_settings()[0] if chunk_size is None else chunk_size
    chunk = max(rows, 1) if chunk is None else chunk
    if chunk < 1:
        raise _refused("chunk_size must be at least 1")
    here = input.device
    there = here if device is None else _plimsoll.device(device)
    cleanup = _Cleanup(there, cleanup_every, final_cleanup)
    results = _Gathered(rows, here if results_on is None else _plimsoll.device(results_on))
    with no_grad():
        chunks = _chunks(input.detach(), rows, chunk)
        for part in chunks if there == here else Prefetcher(chunks, there, prefetch_buffers):
            count = part.shape[0]
            result = function(part)
            # Its memory is for the next one.
            del part
            results.add(result, count)
            del result
            cleanup.after_one()
        cleanup.at_the_end()
    assert results.all is not None
    return results.all


def _chunks(input: Tensor, rows: int, chunk: int) -> Iterator[Tensor]:
    # An input without rows is one chunk, so that the result has its shape.
    for at in range(0, max(rows, 1), chunk):
        yield input.narrow(0, at, min(chunk, rows - at))


def evaluate(
    batches: Iterable[Any],
    function: Callable[[Any], Any],
    *,
    device: Any = None,
    prefetch_buffers: int | None = None,
    cleanup_every: int | None = None,
    final_cleanup: bool | None = None,
) -> list[Any]:
    """What `function` gives for each batch, without recording for gradients. With a `device`, batches are brought there ahead of their
    use. `cleanup_every` gives cached memory back after every so many batches (0 is never), `final_cleanup` at the end."""
    there = None if device is None else _plimsoll.device(device)
    cleanup = _Cleanup(there, cleanup_every, final_cleanup)
    results = []
    with no_grad():
        moved = there is not None and there != _plimsoll.device("cpu")
        for batch in Prefetcher(batches, there, prefetch_buffers) if moved else batches:
            results.append(function(batch))
            # Its memory is for the next one.
            del batch
            cleanup.after_one()
        cleanup.at_the_end()
    return results
