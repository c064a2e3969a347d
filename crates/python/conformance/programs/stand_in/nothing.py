"""What stands for figures and axes: everything done with it gives it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Nothing:
    def __call__(self, *args: Any, **named: Any) -> Nothing:
        return self

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Nothing:
        return self

    def __iter__(self) -> Iterator[Nothing]:
        """A figure and its axes."""
        return iter((self, self))


NOTHING = Nothing()
