"""Measurements beside each other: a table for each label, a column for each description, a row for each statement."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from ._measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BEST = "\033[92m\033[1m"
_GOOD = "\033[34m\033[1m"
_BAD = "\033[2m\033[91m"
_VERY_BAD = "\033[31m\033[1m"
_END = "\033[0m\033[0m"


class Colorize(enum.Enum):
    """Among which measurements the best is sought."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class _Column:
    """The measurements of one description, from top to bottom, and how their numbers are written."""

    def __init__(self, results: list[Measurement | None], scale: float, trim: bool, warn: bool) -> None:
        present = [result for result in results if result is not None]
        self.scale = scale
        self.trim = trim
        self.warn = warn and any(result.has_warnings for result in present)
        digits = [math.ceil(math.log10(result.median / scale)) for result in present]
        decimals = 1
        if trim:
            decimals = min(max(r.significant_figures - d, 0) for r, d in zip(present, digits, strict=True))
        width = max(digits) + decimals + (1 if decimals else 0)
        self.template = f"{{:>{max(width, 0)}.{decimals}f}}{{:>{7 if self.warn else 0}}}"

    def text(self, result: Measurement | None) -> str:
        if result is None:
            return " " * len(self.template.format(1.0, ""))
        value = result.median / self.scale
        if self.trim:
            value = trim_sigfig(value, result.significant_figures)
        doubtful = self.warn and result.has_warnings
        return self.template.format(value, f" (! {result.iqr / result.median * 100:.0f}%)" if doubtful else "")


def _colored(text: str, value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + 100e-9:
        return _BEST + text + _END
    if value <= best * 1.1:
        return _GOOD + text + _END
    if value >= best * 5:
        return _VERY_BAD + text + _END
    if value >= best * 2:
        return _BAD + text + _END
    return text


class _Table:
    """The measurements of one label."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim: bool, warn: bool) -> None:
        self.results = results
        self.colorize = colorize
        self.warn = warn
        self.unit, scale = select_unit(min(result.median for result in results))
        keys = ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results)
        self.rows = sorted(keys, key=lambda key: key[:2])
        self.descriptions = ordered_unique(result.description for result in results)
        found = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        self.cells = [[found.get((row, column)) for column in self.descriptions] for row in self.rows]
        self.columns = [_Column([row[at] for row in self.cells], scale, trim, warn) for at in range(len(self.descriptions))]

    def _row_names(self) -> list[str]:
        """Each row's name, with its environment where that changes and there are several."""
        envs = {result.env for result in self.results}
        width = max(map(len, envs)) + 4 if len(envs) > 1 else 4
        names, before = [], (None, None)
        for threads, env, name in self.rows:
            told = len(envs) > 1 and (threads, env) != before
            names.append("  " + (f"({env})" if told else "").ljust(width) + name)
            before = (threads, env)
        return names

    def _best(self, row: int, column: int) -> float:
        if self.colorize == Colorize.ROWWISE:
            among = self.cells[row]
        else:
            threads = self.rows[row][0]
            among = [cells[column] for key, cells in zip(self.rows, self.cells, strict=True) if key[0] == threads]
        return min(result.median for result in among if result is not None)

    def _cell(self, row: int, column: int, text: str, width: int) -> str:
        result = self.cells[row][column]
        text = text.center(width)
        if self.colorize == Colorize.NONE or result is None:
            return text
        return _colored(text, result.median, self._best(row, column))

    def render(self) -> str:
        texts = [["", *(description or "" for description in self.descriptions)]]
        for name, cells in zip(self._row_names(), self.cells, strict=True):
            texts.append([name, *(column.text(cell) for column, cell in zip(self.columns, cells, strict=True))])
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  |  ".join(text.center(width) for text, width in zip(texts[0], widths, strict=True))]
        whole = len(lines[0])
        before = None
        for at, (key, row) in enumerate(zip(self.rows, texts[1:], strict=True)):
            if key[0] != before:
                before = key[0]
                lines.append(f"{before} threads: ".ljust(whole, "-"))
            numbers = [self._cell(at, c, text, widths[c + 1]) for c, text in enumerate(row[1:])]
            lines.append("  |  ".join([row[0].ljust(widths[0]), *numbers]))
        title = f" {self.results[0].label or ''} ".center(whole - 2, "-")
        body = "\n".join(lines)
        doubtful = self.warn and any(result.has_warnings for result in self.results)
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if doubtful else ""
        return f"[{title}]\n{body}\n\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n{note}"


class Compare:
    """Measurements beside each other: `print(Compare(results))`."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        options = (self._colorize, self._trim_significant_figures, self._highlight_warnings)
        return "\n".join(_Table(group, *options).render() for group in groups.values())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds more."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Writes only figures that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours good and bad ones, by column, or by row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks those whose times are far apart."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))
