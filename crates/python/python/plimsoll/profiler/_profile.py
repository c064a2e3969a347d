"""The profiler: a block, or steps of a loop by a schedule, and what is read from what it recorded."""

from __future__ import annotations

import enum
import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .. import _plimsoll
from ..autograd import _profiler_session
from ..autograd.profiler import record_function
from ..autograd.profiler_util import EventList
from ._schedule import RECORDS, ProfilerAction, always


class ProfilerActivity(enum.Enum):
    """What is recorded. Both always are: kernels are known by the calls that launch them."""

    CPU = 0
    XPU = 1
    CUDA = 2

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


def supported_activities() -> set[ProfilerActivity]:
    """What this machine can record."""
    cuda = any(device.type == "cuda" for device in _plimsoll._devices())
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if cuda else {ProfilerActivity.CPU}


class profile:
    """Records what a block, or each recorded step of a loop, does.

    With a `schedule`, call `step` at the end of every step; `on_trace_ready` is called with the profiler whenever a
    recording is complete. Without arguments everything is recorded from the start of the block to its end."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"Expected ProfilerActivity, got {type(activity)}")
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_range: record_function | None = None
        self._running = False
        #: Whether anything was begun: what was not cannot be ended.
        self._prepared = False
        self._recording: Any = None
        self._events_made: EventList | None = None
        #: What goes into traces beside the events, as JSON: from the next start on, from the next end on, and now.
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._metadata_of_trace: dict[str, str] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def __del__(self) -> None:
        # One that is forgotten while it records must not stand in the way of the next one.
        if getattr(self, "_running", False):
            _profiler_session.end(self)

    def start(self) -> None:
        """Begins with the first step."""
        self._go_over(ProfilerAction.NONE, self.current_action)
        self._enter_step()

    def stop(self) -> None:
        """Ends; what was recorded so far is complete."""
        self._leave_step()
        self._go_over(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        self._leave_step()
        self.step_num += 1
        before, self.current_action = self.current_action, self.schedule(self.step_num)
        self._go_over(before, self.current_action)
        self._enter_step()

    def _enter_step(self) -> None:
        if self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _leave_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _go_over(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """From one step's action to the next one's; None is the end."""
        ends = before == ProfilerAction.RECORD_AND_SAVE or (before == ProfilerAction.RECORD and now not in RECORDS)
        if before == ProfilerAction.RECORD and now in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=3)
        if before == ProfilerAction.WARMUP and now == ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if ends:
            self._stop_trace()
            if (before == ProfilerAction.RECORD_AND_SAVE or now is None) and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before == ProfilerAction.WARMUP and now != ProfilerAction.WARMUP:
            # What was recorded while warming up is left behind.
            self._drop_trace()
        # From RECORD to RECORD nothing begins: steps before `start` record nothing.
        begins = before != ProfilerAction.RECORD and not (before == now == ProfilerAction.WARMUP)
        if begins and now in (ProfilerAction.WARMUP, *RECORDS):
            self._start_trace()

    def _start_trace(self) -> None:
        if self._running:
            # Started twice: it begins anew.
            self._drop_trace()
        _profiler_session.begin(
            self, self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self.with_modules
        )
        self._running = self._prepared = True
        self._metadata.update(self.preset_metadata)

    def _drop_trace(self) -> None:
        if not self._prepared:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self._running:
            _profiler_session.end(self)
            self._running = False

    def _stop_trace(self) -> None:
        if not self._prepared:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self._running:
            self._recording = _profiler_session.end(self)
            # Of one that another cancelled.
            self._events_made = None if self._recording is not None else EventList([])
            self._running = False
            self._metadata_of_trace = dict(self._metadata)

    def _recorded(self) -> Any:
        if self._recording is None:
            raise AssertionError(
                "Profiler must be initialized before getting its results; end its block first, and start no other in it"
            )
        return self._recording

    def events(self) -> EventList:
        """Every event of the last recording, by their beginnings."""
        if self._events_made is None:
            self._events_made = EventList.of(self._recorded(), self.profile_memory, self.with_flops)
        return self._events_made

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """The events added up by name; also by shapes of operands, or by the innermost lines of their stacks."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str, **_ignored: Any) -> None:
        """Writes a trace that Perfetto and chrome://tracing open; compressed if the name ends in `.gz`."""
        self.events().export_chrome_trace(path, self._metadata_of_trace)

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text beside the events of traces, under a name; before the recording ends."""
        if not isinstance(value, str):
            raise TypeError(f"add_metadata: the value of {key!r} is a {type(value).__name__}, not a text")
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, beside the events of traces, under a name."""
        self._metadata[key] = _checked_json(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """As `add_metadata_json`, from the next start on."""
        self.preset_metadata[key] = _checked_json(key, value)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line a stack with its microseconds: what flame graph tools read."""
        events = self.events()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes times (microseconds) and allocated bytes of a device, the CPU unless another is named, as JSON."""
        if not self.profile_memory:
            raise ValueError("profile_memory=True required to export a memory timeline.")
        wanted = device or "cpu"
        points = [point for point in self._recorded().memory() if point[1] == wanted]
        lines = [[point[0] for point in points], [point[4] for point in points]]
        Path(path).write_text(json.dumps(lines))

    def advice(self) -> list[str]:
        """Why the program is slow and what to do, the largest share of its time first."""
        return self._recorded().advice()  # type: ignore[no-any-return]

    def report(self, sort_by: str | None = "self_cpu_time_total", row_limit: int = 10) -> str:
        """The table of averages, and the advice under it."""
        advice = "".join(f"- {line}\n" for line in self.advice())
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit) + advice


def _checked_json(key: str, value: str) -> str:
    """The value, if a trace may hold it."""
    try:
        json.loads(value)
    except (TypeError, ValueError) as cause:
        raise ValueError(f"add_metadata_json: the value of {key!r} is not JSON: {cause}") from None
    return value
