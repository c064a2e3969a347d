"""`%load_ext plimsoll` and `%%memory`: what a notebook's cell needed at its peak, by line, and what of it stayed. Everything but
the two functions at the end works without a notebook."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import _plimsoll
from ._shown import as_printed, size

#: Lines of a cell that are named at most, the largest first.
MOST_LINES = 15
#: Characters of a line's own text.
MOST_TEXT = 60


class LineMemory:
    """Bytes that one line of a program asked for: those in the peak, and those that are still there."""

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line = file, line
        self.peak_bytes = self.stayed_bytes = 0
        self.operations: list[str] = []

    def text(self) -> str:
        """The line itself, if its source can be found."""
        import linecache

        return linecache.getline(self.file, self.line).strip()[:MOST_TEXT]


class DeviceMemory:
    """What some work needed of a device."""

    def __init__(self, device: Any, *, opened_by_the_work: bool = False) -> None:
        self.device, self._device = str(device), device
        self._before: dict[tuple[str, int], tuple[int, list[str]]] = {}
        self.before_bytes = 0
        if not opened_by_the_work:
            self._before = _by_line(device, peak=False)
            self.before_bytes = _plimsoll.memory_allocated(device)
            _plimsoll.reset_peak_memory_stats(device)

    def end(self) -> None:
        """Reads the books after the work."""
        self.peak_bytes = _plimsoll.max_memory_allocated(self._device)
        self.after_bytes = _plimsoll.memory_allocated(self._device)
        lines: dict[tuple[str, int], LineMemory] = {}
        for place, (count, operations) in _by_line(self._device, peak=True).items():
            grown = count - self._before.get(place, (0, []))[0]
            if grown > 0:
                found = lines.setdefault(place, LineMemory(*place))
                found.peak_bytes, found.operations = grown, operations
        for place, (count, operations) in _by_line(self._device, peak=False).items():
            grown = count - self._before.get(place, (0, []))[0]
            if grown > 0:
                found = lines.setdefault(place, LineMemory(*place))
                found.stayed_bytes, found.operations = grown, found.operations or operations
        self.lines = sorted(lines.values(), key=lambda line: (-line.peak_bytes, -line.stayed_bytes, line.file, line.line))

    @property
    def stayed_bytes(self) -> int:
        """How much more is allocated than before; negative if the work freed what was there."""
        return self.after_bytes - self.before_bytes


def _by_line(device: Any, *, peak: bool) -> dict[tuple[str, int], tuple[int, list[str]]]:
    """Bytes and operations by file and line."""
    found: dict[tuple[str, int], tuple[int, list[str]]] = {}
    for row in _plimsoll.memory_by_line(device, peak=peak):
        place = (row["file"] or "", row["line"] or 0)
        count, operations = found.get(place, (0, []))
        found[place] = count + row["bytes"], [*operations, row["operation"]]
    return found


class CellMemory:
    """Memory of some work, by device and line; a notebook shows it as a table.

    >>> import plimsoll as pm
    >>> from plimsoll._cell_memory import CellMemory
    >>> device = pm.private_cpu()
    >>> seen = CellMemory.of(lambda: pm.ones(256, device=device) + 1, [device])
    >>> seen.devices[0].peak_bytes, seen.devices[0].stayed_bytes
    (2048, 0)
    """

    def __init__(self, devices: list[DeviceMemory]) -> None:
        self.devices = devices

    @classmethod
    def of(cls, work: Callable[[], Any], devices: list[Any] | None = None) -> CellMemory:
        """Does the work and says what it needed: of the given devices, or of all that there are. Their peaks are counted anew from
        its beginning."""
        begun = [DeviceMemory(device) for device in (_plimsoll._devices() if devices is None else devices)]
        known = {memory.device for memory in begun}
        work()
        if devices is None:
            new = (device for device in _plimsoll._devices() if str(device) not in known)
            begun += [DeviceMemory(device, opened_by_the_work=True) for device in new]
        for memory in begun:
            memory.end()
        return cls([memory for memory in begun if memory.peak_bytes or memory.after_bytes or len(begun) == 1])

    def _rows(self, memory: DeviceMemory) -> list[tuple[str, str, str, str]]:
        rows = []
        for line in memory.lines[:MOST_LINES]:
            place = line.text() or ", ".join(dict.fromkeys(line.operations))
            rows.append((str(line.line), size(line.peak_bytes), size(line.stayed_bytes), place))
        rest = memory.lines[MOST_LINES:]
        if rest:
            peak, stayed = sum(line.peak_bytes for line in rest), sum(line.stayed_bytes for line in rest)
            rows.append(("", size(peak), size(stayed), f"{len(rest)} more lines"))
        return rows

    def _heading(self, memory: DeviceMemory) -> str:
        change = memory.stayed_bytes
        stayed = f"{size(change)} stayed" if change >= 0 else f"{size(-change)} less than before"
        return f"{memory.device}: peak {size(memory.peak_bytes)}, {size(memory.before_bytes)} of it from before; {stayed}"

    def __repr__(self) -> str:
        parts = []
        for memory in self.devices:
            parts.append(self._heading(memory))
            rows = [("line", "at the peak", "stayed", ""), *self._rows(memory)]
            parts += [f"{line:>6} {peak:>12} {stayed:>12}  {text}".rstrip() for line, peak, stayed, text in rows if len(rows) > 1]
        return "\n".join(parts) or "no tensors"

    def _repr_html_(self) -> str:
        from html import escape

        if not self.devices:
            return as_printed("no tensors")
        parts = []
        for memory in self.devices:
            parts.append(f"<b>{escape(self._heading(memory))}</b>")
            rows = self._rows(memory)
            if not rows:
                continue
            number = '<td style="text-align: right">{}</td>'
            cells = "".join(
                f"<tr>{number.format(line)}{number.format(peak)}{number.format(stayed)}"
                f'<td style="text-align: left"><code>{escape(text)}</code></td></tr>'
                for line, peak, stayed, text in rows
            )
            parts.append(f"<table><tr><th>line</th><th>at the peak</th><th>stayed</th><th></th></tr>{cells}</table>")
        return "".join(parts)


def _memory_magic(shell: Any) -> Callable[[str, str], None]:
    def memory(line: str, cell: str) -> None:
        """Runs the cell and shows what it needed of memory at its peak, by line, and what of that stayed. `%%memory cuda:0` looks
        at one device alone."""
        named = line.strip()
        devices = [_plimsoll.device(named)] if named else None
        seen = CellMemory.of(lambda: shell.run_cell(cell), devices)
        importlib.import_module("IPython.display").display(seen)

    return memory


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext plimsoll` calls: adds `%%memory`."""
    shell.register_magic_function(_memory_magic(shell), magic_kind="cell", magic_name="memory")


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext plimsoll` calls."""
    shell.magics_manager.magics["cell"].pop("memory", None)
