"""The profiler under its old name, and ranges of a program. `plimsoll.profiler` is the newer one, which knows steps and
schedules; both record the same."""

from __future__ import annotations

import functools
from typing import Any, cast

from .. import _plimsoll
from .._modes import _Function
from . import _profiler_session
from .profiler_util import EventList, FunctionEventAvg

__all__ = ["profile", "record_function"]


class record_function:
    """Names a part of the program in what a profiler records: `with record_function("load"): ...`, or as a decorator.
    Costs next to nothing while none runs."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._sessions: list[int | None] = []

    def __enter__(self) -> record_function:
        self._sessions.append(_plimsoll._profiler_range_begin(self.name))
        return self

    def __exit__(self, *failure: object) -> None:
        session = self._sessions.pop()
        if session is not None:
            _plimsoll._profiler_range_end(session)

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            # One of its own for each call: it may be called by itself, and by several threads.
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return cast(_Function, named)


class profile:
    """Records operations, their times and kernels' times until its block ends."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        **_ignored: Any,
    ) -> None:
        self.enabled = enabled
        self.use_device = "cuda" if use_cuda else use_device
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.entered = False
        self._running = False
        self.function_events: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        _profiler_session.begin(
            self, self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self.with_modules
        )
        self._running = True
        return self

    def __exit__(self, *failure: object) -> None:
        if not self.enabled:
            return
        recording = _profiler_session.end(self)
        self._running = False
        # Another one may have cancelled it.
        found = EventList([]) if recording is None else EventList.of(recording, self.profile_memory, self.with_flops)
        self.function_events = found

    def __del__(self) -> None:
        # One that is forgotten while it records must not stand in the way of the next one.
        if getattr(self, "_running", False):
            _profiler_session.end(self)

    def _events(self) -> EventList:
        if self.function_events is None:
            raise AssertionError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events as a text."""
        return self._events().table(sort_by=sort_by, row_limit=row_limit, **options)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events added up by name."""
        return self._events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events in one."""
        return self._events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Host time of all events, in microseconds."""
        return self._events().self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace that Perfetto opens."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks for a flame graph."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._events().export_stacks(path, metric)

    def advice(self) -> list[str]:
        """Why the program is slow, the largest share of its time first."""
        return self._events()._recording.advice()  # type: ignore[no-any-return]
