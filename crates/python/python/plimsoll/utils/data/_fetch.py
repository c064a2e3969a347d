"""From keys to a batch: what a loader and each of its workers do for one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class MapFetcher:
    """Asks a dataset for samples by key."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self._dataset = dataset
        self._auto_collation = auto_collation
        self._collate = collate_fn

    def fetch(self, keys: Any) -> Any:
        dataset = self._dataset
        if not self._auto_collation:
            return self._collate(dataset[keys])
        at_once = getattr(dataset, "__getitems__", None)
        return self._collate(at_once(keys) if at_once else [dataset[key] for key in keys])


class StreamFetcher:
    """Takes the next samples of a stream; a list of keys only says how many."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self._samples = iter(dataset)
        self._auto_collation = auto_collation
        self._collate = collate_fn
        self._drop_last = drop_last
        self._is_over = False

    def fetch(self, keys: Any) -> Any:
        """The next batch; `StopIteration` after the last."""
        if self._is_over:
            raise StopIteration
        if not self._auto_collation:
            return self._collate(next(self._samples))
        samples = []
        for _ in keys:
            try:
                samples.append(next(self._samples))
            except StopIteration:
                self._is_over = True
                break
        if not samples or (self._drop_last and len(samples) < len(keys)):
            raise StopIteration
        return self._collate(samples)
