"""What a timer measured: times of a statement, their middle and spread, and PyTorch's text of it."""

from __future__ import annotations

import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

# A measurement never counts as more exact than this.
_MOST_FIGURES = 4
# Nor as more certain: 25 ns.
_LEAST_INTERVAL = 25e-9

# Spread, as a share of the median, from which a measurement is doubtful, and very doubtful.
_SPREAD_WARNING = 0.1
_GROSS_SPREAD_WARNING = 0.25

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1.0, "second")}


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time in seconds has one to three digits, and how many seconds it is."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3), "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """A unit's name."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order of first appearance."""
    return list(dict.fromkeys(elements))


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Between neighbours by distance, as `quantile` does."""
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """A line, or a few, that name it."""
        if self.label is None and "\n" in self.stmt:
            sub = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{sub}\n{textwrap.indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return name + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """How it was set up, if it was."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [part for part in (self.title, self.description or "", self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


_TASK_FIELDS = tuple(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of runs of a statement, in seconds; each run is `number_per_run` executions."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _TASK_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Times of one execution."""
        return [time / self.number_per_run for time in self.raw_times]

    def _at(self, q: float) -> float:
        return _quantile(sorted(self.times), q) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        return self._at(0.5)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """How far the middle half of the times is spread."""
        return self._at(0.75) - self._at(0.25)

    @property
    def significant_figures(self) -> int:
        """About how many figures of the median mean something, from the middle half of the times."""
        ordered, count = sorted(self.times), len(self.raw_times)
        middle = ordered[count // 4 : math.ceil(3 * count / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        figures = math.floor(math.log10(self.median / interval))
        return min(max(figures, 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _SPREAD_WARNING) -> bool:
        """Whether the times are close together."""
        return self.iqr / self.median < threshold

    @property
    def _warning(self) -> str:
        if not self.raw_times or self.meets_confidence():
            return ""
        gross = not self.meets_confidence(_GROSS_SPREAD_WARNING)
        told = "This suggests significant environmental influence."
        return (
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
            f"           {told if gross else 'This could indicate system fluctuation.'}"
        )

    @property
    def has_warnings(self) -> bool:
        return bool(self._warning)

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count = len(self.raw_times)
        lines = [
            object.__repr__(self).replace("plimsoll.utils.benchmark._measurement", "plimsoll.utils.benchmark"),
            self.task_spec.summarize(),
            f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}",
        ]
        if count >= 4:
            low, high = self._at(0.25) / scale, self._at(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if count > 1 else ','} "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join([*lines, self._warning]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of one task as one, with times of single executions."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(number_per_run=1, raw_times=times, task_spec=task) for task, times in groups.items()]
