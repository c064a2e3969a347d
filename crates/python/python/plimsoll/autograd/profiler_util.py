"""What a profiler recorded, as PyTorch's classes: events (`FunctionEvent`), their averages (`FunctionEventAvg`) and lists
of either (`EventList`). The figures come from Rust; so does the table."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _plimsoll
from .._shown import as_printed
from ._trace_entries import add_to_trace

__all__ = ["DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]

Kernel = namedtuple("Kernel", ["name", "device", "duration"])

_STACK_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


class DeviceType(enum.IntEnum):
    """Where an event ran, by PyTorch's numbers; the stand-in accelerator is a private one."""

    CPU = 0
    CUDA = 1
    PrivateUse1 = 20

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


_DEVICE_TYPES = {"cpu": DeviceType.CPU, "cuda": DeviceType.CUDA, "standin": DeviceType.PrivateUse1}


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long."""
        return self.end - self.start


def _format_time(time_us: float) -> str:
    for unit, word in ((1e6, "s"), (1e3, "ms")):
        if time_us >= unit:
            return f"{time_us / unit:.3f}{word}"
    return f"{time_us:.3f}us"


def _format_memory(nbytes: int) -> str:
    for unit, word in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {word}"
    return f"{nbytes} B"


class FormattedTimesMixin:
    """Times of one call, times as texts, and the old names of figures."""

    count: int
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float
    device_memory_usage: int
    self_device_memory_usage: int

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return _format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        return _format_time(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _format_time(self.cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        return _format_time(self.device_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _format_time(self.self_cpu_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        return _format_time(self.self_device_time_total)

    @property
    def cuda_time(self) -> float:
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        return self.self_device_time_total

    @property
    def cuda_memory_usage(self) -> int:
        return self.device_memory_usage

    @property
    def self_cuda_memory_usage(self) -> int:
        return self.self_device_memory_usage


class _Row(FormattedTimesMixin):
    """What the table reads of a row beside its figures."""

    device_type: DeviceType
    cpu_parent: FunctionEvent | None
    input_shapes: Any
    stack: list[str]
    flops: int

    @property
    def _shapes(self) -> list[list[int]] | None:
        return None if isinstance(self.input_shapes, str) else self.input_shapes

    @property
    def _stack(self) -> list[str]:
        return self.stack or []

    @property
    def _flops(self) -> int:
        return self.flops or 0

    @property
    def _is_kernel(self) -> bool:
        return self.device_type != DeviceType.CPU

    @property
    def _is_cuda(self) -> bool:
        return self.device_type == DeviceType.CUDA

    @property
    def _is_top_level(self) -> bool:
        return self.cpu_parent is None


class FunctionEvent(_Row):
    """One thing that happened: an operation, a node of backward, a range, a wait, a kernel, or memory on its own.

    Beside PyTorch's attributes it has `module_path`, the module that it ran in or for (with `with_modules`), and `phase`."""

    def __init__(self, id: int, recorded: dict[str, Any], use_device: str | None) -> None:
        self.id = id
        self.node_id = -1
        self.trace_name: str = recorded["name"]
        self.name = "ProfilerStep*" if self.trace_name.startswith("ProfilerStep#") else self.trace_name
        self.overload_name = ""
        self.time_range = Interval(recorded["start_us"], recorded["end_us"])
        self.thread: int = recorded["thread"]
        self.fwd_thread = None
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent = None
        self.input_shapes = recorded["input_shapes"]
        self.input_dtypes: list[str] = recorded["input_dtypes"]
        self.stack = recorded["stack"]
        self.scope = 1 if recorded["kind"] == "backward" else 0
        self.use_device = use_device
        self.cpu_memory_usage: int = recorded["cpu_bytes"]
        self.device_memory_usage = recorded["device_bytes"]
        self.is_async = False
        self.is_remote = False
        self.is_legacy = False
        self.sequence_nr = -1
        self.device_type = _DEVICE_TYPES[recorded["device"]]
        self.device_index: int = recorded["device_index"]
        self.device_resource_id: int = recorded["stream"] if self._is_kernel else self.thread
        self.flops = recorded["flops"]
        self.is_user_annotation: bool = recorded["kind"] == "range"
        self.is_python_function = False
        self.module_path: str = recorded["module"]
        self.phase: str = recorded["phase"]

    @property
    def key(self) -> str:
        return self.name

    def _without_children(self, figure: str) -> Any:
        if self._is_kernel:
            return 0
        return getattr(self, figure) - sum(getattr(child, figure) for child in self.cpu_children)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return 0.0 if self._is_kernel else self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self._without_children("cpu_time_total")  # type: ignore[no-any-return]

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        if self._is_kernel:
            return self.time_range.elapsed_us()
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)  # type: ignore[no-any-return]

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        return self.device_time_total if self._is_kernel else self._without_children("device_time_total")

    @property
    def self_cpu_memory_usage(self) -> int:
        return self._without_children("cpu_memory_usage")  # type: ignore[no-any-return]

    @property
    def self_device_memory_usage(self) -> int:  # type: ignore[override]
        return self._without_children("device_memory_usage")  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {self.use_device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMS = (
    "count",
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "flops",
)

_OF_THE_FIRST = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "is_legacy",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "use_device",
    "is_user_annotation",
)


class FunctionEventAvg(_Row):
    """Events of one name, added up."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.input_shapes = None
        self.stack = []
        self.device_type = DeviceType.CPU
        self.use_device: str | None = None
        for figure in _SUMS:
            setattr(self, figure, 0)

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds another event, or average, of the same name."""
        if self.key is None:
            for name in _OF_THE_FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"{other.key} cannot be added to the average of {self.key}")
        for figure in _SUMS:
            setattr(self, figure, getattr(self, figure) + getattr(other, figure))
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"  # type: ignore[attr-defined]
        )


class EventList(list[Any]):
    """Events, or averages of them."""

    def __init__(
        self,
        events: Iterable[FunctionEvent | FunctionEventAvg] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        recording: Any = None,
    ) -> None:
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._recording = recording

    @classmethod
    def of(cls, recording: Any, profile_memory: bool, with_flops: bool) -> EventList:
        """The events of what Rust recorded, each with those that lie in it."""
        recorded = recording.events()
        devices = [event["device"] for event in recorded if event["kind"] == "kernel"]
        use_device = devices[0] if devices else None
        events = [FunctionEvent(index, event, use_device) for index, event in enumerate(recorded)]
        for event, told in zip(events, recorded, strict=True):
            if told["parent"] is None:
                continue
            parent = events[told["parent"]]
            if event._is_kernel:
                parent.kernels.append(Kernel(event.name, event.device_index, event.time_range.elapsed_us()))
            else:
                parent.cpu_children.append(event)
                event.cpu_parent = parent
        memory_and_flops = {"profile_memory": profile_memory, "with_flops": with_flops}
        return cls(events, use_device=use_device, recording=recording, **memory_and_flops)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return as_printed(self.table())

    @property
    def self_cpu_time_total(self) -> float:
        """Host time of all."""
        return sum(event.self_cpu_time_total for event in self)  # type: ignore[no-any-return]

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The rows as a text, largest first by the attribute `sort_by`, under its old (`cuda_`) or new (`device_`)
        name; at most `row_limit` of them, all if it is negative."""
        rows = list(self)
        if sort_by is not None and rows:
            figure = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
            rows.sort(key=lambda row: getattr(row, figure), reverse=True)
        return _plimsoll._profiler_table(
            rows,
            memory=self._profile_memory,
            flops=self._with_flops,
            row_limit=None if row_limit < 0 else row_limit,
            max_name=max_name_column_width,
            max_shapes=max_shapes_column_width,
            max_source=max_src_column_width,
            header=header,
            top_level=top_level_events_only,
            time_unit=time_unit,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """The events added up by name; also by shapes of operands, or by the innermost lines of their stacks."""
        averages: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            stack = (event.stack or [])[:group_by_stack_n]
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = (event.key, event.device_type, event.is_user_annotation, shapes, *stack)
            averages.setdefault(key, FunctionEventAvg()).add(event)
        for average in averages.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return EventList(
            averages.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def total_average(self) -> FunctionEventAvg:
        """All events in one, named Total."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str, metadata: dict[str, str] | None = None) -> None:
        """Writes a trace that Perfetto and chrome://tracing open; compressed if the name ends in `.gz`. `metadata` are
        values beside the events, as JSON."""
        if self._recording is None:
            raise RuntimeError("only the events of a profiler have a trace; averages of them do not")
        if not str(path).endswith(".gz"):
            self._recording.chrome_trace(path)
            add_to_trace(Path(path), metadata or {})
            return
        import gzip

        plain = Path(str(path)[: -len(".gz")] + ".tmp")
        try:
            self._recording.chrome_trace(plain)
            add_to_trace(plain, metadata or {})
            Path(path).write_bytes(gzip.compress(plain.read_bytes()))
        finally:
            plain.unlink(missing_ok=True)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write."""
        return list(_STACK_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line a stack, outermost frame first, with its microseconds: what flame graph tools read."""
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}")
        if self._recording is None:
            raise RuntimeError("only the events of a profiler have stacks; averages of them do not")
        self._recording.export_stacks(path, metric)
