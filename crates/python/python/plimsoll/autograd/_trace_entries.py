"""Values beside the events of a trace, put into a file that is written already."""

from __future__ import annotations

import json
from pathlib import Path


def add_to_trace(path: Path, entries: dict[str, str]) -> None:
    """Puts entries, whose values are JSON, before the brace that ends a trace; what may be long is not read."""
    if not entries:
        return
    with open(path, "r+b") as file:
        size = file.seek(0, 2)
        start = max(0, size - 16)
        file.seek(start)
        file.seek(start + file.read().rindex(b"}"))
        written = "".join(f",{json.dumps(key)}:{value}" for key, value in entries.items())
        file.write(f"{written}}}\n".encode())
        file.truncate()
