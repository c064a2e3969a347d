"""Timing of a statement: like `timeit`, with devices waited for, a number of threads of its own, and as many runs as it
takes."""

from __future__ import annotations

import contextlib
import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable, Iterator
from typing import Any

from ... import _plimsoll
from ._measurement import Measurement, TaskSpec


def timer() -> float:
    """The time in seconds, when all devices have done what they were given."""
    for device in _plimsoll._devices():
        if device.type != "cpu":
            _plimsoll.synchronize(device)
    return timeit.default_timer()


class Language(enum.Enum):
    """What statements are written in; here, Python."""

    PYTHON = 0
    CPP = 1


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = _plimsoll.get_num_threads()
    _plimsoll.set_num_threads(count)
    try:
        yield
    finally:
        _plimsoll.set_num_threads(before)


def _flush_left(code: str) -> str:
    """Code as it was meant, where it stands in an indented text of its own lines."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Measures how long a statement takes. `globals` are the names that it sees, with `plimsoll` and `torch` for this
    package if they are not among them; the other texts are for `Compare`."""

    _timer_cls: Any = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`: statements are Python here.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        import plimsoll

        self._globals = {"torch": plimsoll, "plimsoll": plimsoll, **(globals or {})}
        stmt, setup = _flush_left(stmt), _flush_left(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _timeit(self, number: int) -> float:
        # Nothing takes no time, so that times can be divided by.
        return max(self._timer.timeit(number), 1e-9)  # type: ignore[no-any-return]

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement `number` times, after a few that do not count."""
        with _threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many executions a run needs for the clock not to matter. Warms up as well."""
        overhead = statistics.median(self._timeit(0) for _ in range(5))
        number = 1
        while number * 10 <= 2147483647:
            taken = self._timeit(number)
            negligible = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if negligible or taken > min_run_time:
                break
            number *= 10
        return number

    def _run(
        self,
        number: int,
        enough: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None,
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        times: list[float] = []
        while sum(times) < min_run_time or not enough(times):
            times.append(self._timeit(number))
            if callback:
                callback(number, times[-1])
            if max_run_time and sum(times) > max_run_time:
                break
        return self._measured(number, times)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Runs of as many executions as it takes for the clock not to matter, until `min_run_time` seconds are over."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._run(number, lambda _times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the times are close together (spread below `threshold` of the median) or
        `max_run_time` seconds are over."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time=0.05)

            def close(times: list[float]) -> bool:
                return len(times) > 3 and self._measured(number, times).meets_confidence(threshold)

            return self._run(number, close, min_run_time, max_run_time, callback)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("instructions are not counted here; use `blocked_autorange`, or callgrind itself")
