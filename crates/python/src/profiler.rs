//! The profiler for Python: starting and stopping sessions, ranges, and what was recorded as plain
//! values. The classes over them, PyTorch's, are in `autograd/profiler_util.py` and `profiler/` of
//! the package; only the table is written here, from whatever rows Python has.

use std::borrow::Cow;
use std::path::PathBuf;

use parking_lot::Mutex;
use plimsoll_core::{Device, DeviceKind, Error};
use plimsoll_memory::Site;
use plimsoll_profile::{
    Average, Averages, Event, EventKind, Profile, Recording, Session, StackMetric, TableOptions,
    TimeUnit, begin_range, end_range, frame_words, is_on,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::call;
use crate::error::to_python;
use crate::frames;

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Starts to record; fails if a session runs already.
#[pyfunction]
fn _profiler_start(
    py: Python<'_>,
    shapes: bool,
    memory: bool,
    stacks: bool,
    flops: bool,
    modules: bool,
) -> PyResult<()> {
    let asked = Profile::new().shapes(shapes).memory(memory).stacks(stacks).flops(flops);
    let asked = asked.modules(modules).frames(stack);
    let session = asked.start().map_err(|error| to_python(py, error))?;
    *SESSION.lock() = Some(session);
    Ok(())
}

/// Stops recording, if a session runs.
#[pyfunction]
fn _profiler_stop(py: Python<'_>) -> PyResult<Option<PyRecording>> {
    let session = SESSION.lock().take();
    // Waits for devices.
    call(py, || Ok(session.map(|session| PyRecording(session.stop()))))
}

/// The frames of this thread that are the user's, innermost first.
fn stack() -> Vec<Site> {
    Python::attach(frames::stack)
}

/// Begins a range; gives the number of the session that hears of it, or None.
#[pyfunction]
fn _profiler_range_begin(name: &str) -> Option<u64> {
    if is_on() { begin_range(Cow::Owned(name.to_string())) } else { None }
}

/// Ends the innermost range of this thread.
#[pyfunction]
fn _profiler_range_end(session: u64) {
    end_range(session);
}

/// What a session recorded.
#[pyclass(name = "_ProfilerRecording", module = "plimsoll", frozen)]
struct PyRecording(Recording);

#[pymethods]
impl PyRecording {
    /// Every event as a dictionary, by their beginnings.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for event in self.0.events() {
            list.append(dictionary(py, event)?)?;
        }
        Ok(list)
    }

    /// Moments of the memory's history: time, device, address, change, allocated, reserved.
    fn memory(&self) -> Vec<(f64, String, usize, i64, usize, usize)> {
        let point = |point: &plimsoll_profile::MemoryPoint| {
            let arena = point.arena.map_or_else(|| point.device.to_string(), str::to_string);
            let (allocated, reserved) = (point.allocated_bytes, point.reserved_bytes);
            let time_us = point.at_ns as f64 / 1e3;
            (time_us, arena, point.address, point.change_bytes, allocated, reserved)
        };
        self.0.memory().iter().map(point).collect()
    }

    /// Writes the trace.
    fn chrome_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        call(py, || self.0.chrome_trace(path))
    }

    /// Writes the stacks.
    fn export_stacks(&self, py: Python<'_>, path: PathBuf, metric: &str) -> PyResult<()> {
        call(py, || self.0.export_stacks(path, StackMetric::parse(metric)?))
    }

    /// Why the program is slow.
    fn advice(&self) -> Vec<String> {
        self.0.advice().iter().map(ToString::to_string).collect()
    }

    /// How long it was, in microseconds.
    #[getter]
    fn duration_us(&self) -> f64 {
        self.0.duration_ns() as f64 / 1e3
    }
}

fn device_word(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
        DeviceKind::StandIn => "standin",
    }
}

fn kind_word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Operation => "operation",
        EventKind::Backward => "backward",
        EventKind::Range => "range",
        EventKind::Wait => "wait",
        EventKind::Kernel => "kernel",
        EventKind::Memory => "memory",
    }
}

fn dictionary<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let us = |ns: u64| ns as f64 / 1e3;
    let dict = PyDict::new(py);
    dict.set_item("name", &event.name)?;
    dict.set_item("kind", kind_word(event.kind))?;
    dict.set_item("parent", event.parent)?;
    dict.set_item("thread", event.thread)?;
    dict.set_item("device", device_word(event.device.kind()))?;
    dict.set_item("device_index", event.device.index())?;
    dict.set_item("stream", event.stream)?;
    dict.set_item("start_us", us(event.start_ns))?;
    dict.set_item("end_us", us(event.end_ns))?;
    dict.set_item("cpu_bytes", event.cpu_bytes)?;
    dict.set_item("device_bytes", event.device_bytes)?;
    dict.set_item("input_shapes", &event.input_shapes)?;
    dict.set_item("input_dtypes", &event.input_dtypes)?;
    let stack: Vec<String> = event.stack.iter().map(|&site| frame_words(site)).collect();
    dict.set_item("stack", stack)?;
    dict.set_item("module", event.module.to_string())?;
    dict.set_item("phase", event.phase.to_string())?;
    dict.set_item("flops", event.flops)?;
    Ok(dict)
}

/// A row of Python's: an average, or a single event.
#[derive(FromPyObject)]
struct Row {
    key: String,
    count: u64,
    cpu_time_total: f64,
    self_cpu_time_total: f64,
    device_time_total: f64,
    self_device_time_total: f64,
    cpu_memory_usage: i64,
    self_cpu_memory_usage: i64,
    device_memory_usage: i64,
    self_device_memory_usage: i64,
    #[pyo3(attribute("_shapes"))]
    shapes: Option<Vec<Vec<usize>>>,
    #[pyo3(attribute("_stack"))]
    stack: Vec<String>,
    #[pyo3(attribute("_flops"))]
    flops: u64,
    #[pyo3(attribute("_is_kernel"))]
    is_kernel: bool,
    #[pyo3(attribute("_is_cuda"))]
    is_cuda: bool,
    #[pyo3(attribute("_is_top_level"))]
    top_level: bool,
}

impl Row {
    fn average(self) -> Average {
        let kind = if self.is_kernel { EventKind::Kernel } else { EventKind::Operation };
        // Only the kind of the device is read of it.
        let device = match (self.is_kernel, self.is_cuda) {
            (false, _) => Device::CPU,
            (true, true) => Device::from_slot(0, DeviceKind::Cuda, 0, false),
            (true, false) => Device::from_slot(0, DeviceKind::StandIn, 0, false),
        };
        let mut row = Average::named(self.key, kind, device);
        row.count = self.count;
        row.cpu_time_us = self.cpu_time_total;
        row.self_cpu_time_us = self.self_cpu_time_total;
        row.device_time_us = self.device_time_total;
        row.self_device_time_us = self.self_device_time_total;
        row.cpu_bytes = self.cpu_memory_usage;
        row.self_cpu_bytes = self.self_cpu_memory_usage;
        row.device_bytes = self.device_memory_usage;
        row.self_device_bytes = self.self_device_memory_usage;
        row.input_shapes = self.shapes;
        row.stack = self.stack;
        row.flops = self.flops;
        row.top_level = self.top_level;
        row
    }
}

/// PyTorch's table of rows, in their order.
#[pyfunction]
#[pyo3(signature = (rows, *, memory, flops, row_limit, max_name, max_shapes, max_source, header, top_level, time_unit))]
#[allow(clippy::too_many_arguments, reason = "PyTorch's arguments, by name")]
fn _profiler_table(
    py: Python<'_>,
    rows: Vec<Row>,
    memory: bool,
    flops: bool,
    row_limit: Option<usize>,
    max_name: Option<usize>,
    max_shapes: Option<usize>,
    max_source: Option<usize>,
    header: Option<String>,
    top_level: bool,
    time_unit: Option<&str>,
) -> PyResult<String> {
    let rows = rows.into_iter().map(Row::average).collect();
    let mut options = TableOptions::new().row_limit(row_limit).top_level_only(top_level);
    options = options.max_widths(max_name, max_shapes, max_source);
    if let Some(header) = header {
        options = options.header(header);
    }
    let unit = match time_unit {
        Some("s") => Some(TimeUnit::Seconds),
        Some("ms") => Some(TimeUnit::Milliseconds),
        Some("us") => Some(TimeUnit::Microseconds),
        _ => None,
    };
    if let Some(unit) = unit {
        options = options.time_unit(unit);
    }
    let table = Averages::from_rows(rows, memory, flops).table(&options);
    table.map_err(|error: Error| to_python(py, error))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecording>()?;
    module.add_function(wrap_pyfunction!(_profiler_start, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_stop, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_range_begin, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_range_end, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_table, module)?)
}
