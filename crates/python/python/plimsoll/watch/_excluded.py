"""What a watch is asked not to report: tensors, and findings of a line or a name. Growth that is known and wanted stays
out of the verdict. Tensors are told by their storages, weakly."""

from __future__ import annotations

import weakref
from typing import Any, Iterable

from ._findings import Finding


class Excluded:
    """Tensors, and texts of which one names a line (`train.py:17`) or a name on the holder's path (`replay`)."""

    def __init__(self, what: Iterable[Any] = ()) -> None:
        self._texts: list[str] = []
        self._storages: list[weakref.ref[Any]] = []
        # Those of watches that have joined this one.
        self._others: list[Excluded] = []
        self.add(what)

    def add(self, what: Iterable[Any]) -> None:
        # `exclude="replay"`: one name, not its letters.
        for one in [what] if isinstance(what, str) else what:
            if isinstance(one, str):
                self._texts.append(one)
                continue
            import torch

            from ._making import storage_of

            if not issubclass(type(one), torch.Tensor):
                # A list could only be told by its address, which another takes when it is gone.
                raise TypeError(
                    f"watch: exclude takes tensors, lines ('train.py:17') and names ('replay'), not {type(one).__name__}"
                )
            storage = storage_of(one)
            if storage is not None:
                self._storages.append(weakref.ref(storage))

    def include(self, other: Excluded) -> None:
        """What another one excludes, now or later, is excluded here."""
        if other not in self._others:
            self._others.append(other)

    def forget(self, other: Excluded) -> None:
        """It is over; what it has excluded stays so, if that is anything."""
        if not (other._texts or other._storages or other._others):
            self._others = [one for one in self._others if one is not other]

    def keys(self) -> set[int]:
        """The storages that still live; those that do not are forgotten, as another may take their key."""
        own: set[int] = set()
        if self._storages:
            from ._making import living

            self._storages = [weak for weak in self._storages if living(weak) is not None]
            own = {storage._cdata for weak in self._storages if (storage := living(weak)) is not None}
        return own.union(*(other.keys() for other in self._others))

    def has(self, finding: Finding) -> bool:
        return self.names(finding.lines, finding.path)

    def names(self, lines: list[str], path: list[dict[str, Any]]) -> bool:
        names = {str(step.get("name", "")).strip("'\"") for step in path}
        is_own = any(text in lines or text in names for text in self._texts)
        return is_own or any(other.names(lines, path) for other in self._others)
