"""Pictures that programs save are not needed."""

from __future__ import annotations

from typing import Any


def save_image(tensor: Any, path: Any, **named: Any) -> None:
    pass
