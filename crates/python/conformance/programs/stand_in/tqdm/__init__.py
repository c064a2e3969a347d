"""`tqdm` without a bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class tqdm:
    def __init__(self, iterable: Iterable[Any] | None = None, *args: Any, **named: Any) -> None:
        self.iterable = () if iterable is None else iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def _nothing(self, *args: Any, **named: Any) -> None:
        pass

    update = set_description = set_postfix = set_postfix_str = close = refresh = _nothing

    @staticmethod
    def write(*args: Any, **named: Any) -> None:
        print(*args)


def trange(*args: int, **named: Any) -> tqdm:
    return tqdm(range(*args))
