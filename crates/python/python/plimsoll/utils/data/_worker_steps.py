"""What a worker does for its steps, whether it is a thread or a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._failure import Failure, StreamEnd
from ._fetch import StreamFetcher


class WorkerSteps:
    """Makes the steps of one worker. What goes wrong is the result of its step, and the worker goes on."""

    def __init__(
        self,
        number: int,
        dataset: Any,
        make_fetcher: Callable[[Any], Any],
        init_fn: Callable[[int], Any] | None,
        where: str,
        finish: Callable[[Any], Any] | None = None,
    ) -> None:
        self._dataset, self._make_fetcher, self._where, self._finish = dataset, make_fetcher, where, finish
        self._fetcher: Any = None
        self._epoch: int | None = None
        self._failure: Failure | None = None
        try:
            if init_fn is not None:
                init_fn(number)
        except Exception:
            self._failure = Failure(where)

    def make(self, epoch: int, keys: Any) -> Any:
        """The batch of these keys, `StreamEnd` or a `Failure`. Each epoch has a fetcher of its own."""
        if epoch != self._epoch:
            self._fetcher, self._epoch = None, epoch
        if self._failure is not None:
            # Told once; later steps are tried all the same, as in PyTorch.
            told, self._failure = self._failure, None
            return told
        try:
            if self._fetcher is None:
                self._fetcher = self._make_fetcher(self._dataset)
            batch = self._fetcher.fetch(keys)
            return batch if self._finish is None else self._finish(batch)
        except Exception as problem:
            over = isinstance(problem, StopIteration) and isinstance(self._fetcher, StreamFetcher)
            return StreamEnd() if over else Failure(self._where)
