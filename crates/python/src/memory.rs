//! PyTorch's memory functions, for every device, the CPU included; and what PyTorch does not have:
//! bytes by kind, module, phase and line, peaks of a region, and the marks of steps and epochs.

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, BreakdownRow, Configuration, HistoryLevel, PeakScope, Share, Snapshot, next_epoch,
    next_step, set_epoch, set_step,
};
use plimsoll_tensor::memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::call;
use crate::device::DeviceArg;
use crate::tensor::{PyTensor, TensorObject};

fn place(device: Option<DeviceArg>) -> Device {
    device.map_or(Device::cpu(), |device| device.0)
}

fn arena(device: Option<DeviceArg>) -> &'static Arena {
    memory::arena(place(device))
}

/// Functions of a device that give a number of bytes.
macro_rules! figures {
    ($($name:ident: $doc:literal),*) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (device = None))]
        fn $name(device: Option<DeviceArg>) -> usize {
            memory::$name(place(device))
        }
    )*};
}

figures!(
    memory_allocated: "Bytes in tensors and workspaces now, rounded as the allocator rounds.",
    max_memory_allocated: "The highest `memory_allocated` since the start or the last reset.",
    memory_reserved: "Bytes held from the system, in use or cached.",
    max_memory_reserved: "The highest `memory_reserved` since the start or the last reset.",
    memory_external: "Bytes that tensors use and that somebody else owns, as with `from_numpy`; in no other figure."
);

/// Gives cached memory back to the system, but for `keep_bytes` of it; returns how many bytes.
#[pyfunction]
#[pyo3(signature = (device = None, *, keep_bytes = 0))]
fn empty_cache(device: Option<DeviceArg>, keep_bytes: usize) -> usize {
    match keep_bytes {
        0 => memory::empty_cache(place(device)),
        _ => arena(device).trim(keep_bytes),
    }
}

/// The peak of a device by kind, module and line, as a table of 80 columns.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn memory_report(device: Option<DeviceArg>) -> String {
    memory::memory_report(place(device))
}

/// All statistics of a device, under PyTorch's keys.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn memory_stats<'py>(py: Python<'py>, device: Option<DeviceArg>) -> PyResult<Bound<'py, PyDict>> {
    let stats = PyDict::new(py);
    for (key, value) in arena(device).stats().entries() {
        stats.set_item(key, value)?;
    }
    Ok(stats)
}

/// PyTorch's table of the statistics.
#[pyfunction]
#[pyo3(signature = (device = None, abbreviated = false))]
fn memory_summary(device: Option<DeviceArg>, abbreviated: bool) -> String {
    let name = place(device).to_string();
    plimsoll_memory::memory_summary(&arena(device).stats(), &name, abbreviated)
}

/// Makes the present figures the new peaks; scoped peaks are not disturbed.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn reset_peak_memory_stats(device: Option<DeviceArg>) {
    memory::reset_peak_memory_stats(place(device));
}

/// Lets the totals count from zero again.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn reset_accumulated_memory_stats(device: Option<DeviceArg>) {
    arena(device).reset_accumulated_stats();
}

/// The most bytes that may be reserved from now on, or None for no limit; returns the previous
/// limit.
#[pyfunction]
#[pyo3(signature = (bytes, device = None))]
fn set_memory_limit(bytes: Option<usize>, device: Option<DeviceArg>) -> Option<usize> {
    arena(device).set_limit(bytes)
}

/// The share of the device's memory that may be reserved; returns the previous one.
#[pyfunction]
#[pyo3(signature = (fraction, device = None))]
fn set_per_process_memory_fraction(fraction: f64, device: Option<DeviceArg>) -> PyResult<f64> {
    if !(0.0..=1.0).contains(&fraction) {
        return Err(PyValueError::new_err(format!("{fraction} is not a share between 0 and 1")));
    }
    Ok(arena(device).set_memory_fraction(fraction))
}

/// The share of a device's memory that may be reserved.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn get_per_process_memory_fraction(device: Option<DeviceArg>) -> f64 {
    arena(device).memory_fraction()
}

/// Limits and shares as they were when the program started: those of PLIMSOLL_CONF, or none.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn reset_memory_settings(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<()> {
    let arena = arena(device);
    call(py, || {
        let configuration = Configuration::process()?;
        arena.set_limit(configuration.memory_limit_bytes());
        arena.set_soft_limit(configuration.memory_soft_limit_bytes());
        arena.set_memory_fraction(configuration.memory_fraction());
        Ok(())
    })
}

/// Starts recording ("all", "alloc", "state") or stops (None); returns nothing, like PyTorch's.
#[pyfunction]
#[pyo3(signature = (enabled = Some("all"), max_entries = 1_000_000, device = None))]
fn record_memory_history(
    enabled: Option<&str>,
    max_entries: usize,
    device: Option<DeviceArg>,
) -> PyResult<()> {
    let level = match enabled {
        None => HistoryLevel::Off,
        Some("state") => HistoryLevel::State,
        Some("alloc") => HistoryLevel::Alloc,
        Some("all") => HistoryLevel::All,
        Some(other) => {
            let message =
                format!("`{other}` is not a level: use None, \"state\", \"alloc\" or \"all\"");
            return Err(PyValueError::new_err(message));
        }
    };
    arena(device).record_history(level, max_entries);
    Ok(())
}

/// Writes a snapshot in PyTorch's layout: JSON if the name ends in `.json`, else a pickle for its
/// viewer.
#[pyfunction]
#[pyo3(signature = (path, device = None))]
fn dump_snapshot(
    py: Python<'_>,
    path: std::path::PathBuf,
    device: Option<DeviceArg>,
) -> PyResult<()> {
    let arena = arena(device);
    call(py, || Snapshot::take(&[arena], &Configuration::from_environment()?).save(&path))
}

/// As `dump_snapshot`, with several devices in one file.
#[pyfunction]
fn _dump_snapshot_of(
    py: Python<'_>,
    path: std::path::PathBuf,
    devices: Vec<DeviceArg>,
) -> PyResult<()> {
    let arenas: Vec<&Arena> = devices.into_iter().map(|device| arena(Some(device))).collect();
    call(py, || Snapshot::take(&arenas, &Configuration::from_environment()?).save(&path))
}

/// The snapshot as dictionaries and lists.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn memory_snapshot<'py>(py: Python<'py>, device: Option<DeviceArg>) -> PyResult<Bound<'py, PyAny>> {
    let arena = arena(device);
    let bytes = call(py, || {
        let mut bytes = Vec::new();
        Snapshot::take(&[arena], &Configuration::from_environment()?).write_pickle(&mut bytes)?;
        Ok(bytes)
    })?;
    py.import("pickle")?.call_method1("loads", (pyo3::types::PyBytes::new(py, &bytes),))
}

/// Bytes and blocks by kind, largest first: now, or at the peak.
#[pyfunction]
#[pyo3(signature = (device = None, *, peak = false))]
fn memory_by_kind<'py>(
    py: Python<'py>,
    device: Option<DeviceArg>,
    peak: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let arena = arena(device);
    let rows = if peak { arena.peak_by_kind() } else { arena.live_by_kind() };
    let kinds = PyDict::new(py);
    for row in rows {
        kinds.set_item(row.kind.to_string(), row.bytes)?;
    }
    Ok(kinds)
}

/// Bytes and blocks by the line, operation and kind that asked for them, largest first: now, or at
/// the peak.
#[pyfunction]
#[pyo3(signature = (device = None, *, peak = false))]
fn memory_by_line<'py>(
    py: Python<'py>,
    device: Option<DeviceArg>,
    peak: bool,
) -> PyResult<Bound<'py, PyList>> {
    let arena = arena(device);
    rows(py, &if peak { arena.peak_by_origin() } else { arena.live_by_origin() })
}

/// Bytes by module path, largest first: now, or at the peak. What is outside of all modules has the
/// empty path.
#[pyfunction]
#[pyo3(signature = (device = None, *, peak = false))]
fn memory_by_module<'py>(
    py: Python<'py>,
    device: Option<DeviceArg>,
    peak: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let arena = arena(device);
    shares(py, &if peak { arena.peak_by_module() } else { arena.live_by_module() })
}

/// Bytes by the phase of training that made them, largest first: now, or at the peak.
#[pyfunction]
#[pyo3(signature = (device = None, *, peak = false))]
fn memory_by_phase<'py>(
    py: Python<'py>,
    device: Option<DeviceArg>,
    peak: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let arena = arena(device);
    shares(py, &if peak { arena.peak_by_phase() } else { arena.live_by_phase() })
}

fn shares<'py, P: ToString>(py: Python<'py>, shares: &[Share<P>]) -> PyResult<Bound<'py, PyDict>> {
    let parts = PyDict::new(py);
    for share in shares {
        parts.set_item(share.part.to_string(), share.bytes)?;
    }
    Ok(parts)
}

/// Says that a training iteration begins: the next one, or the given one. Returns its number.
#[pyfunction]
#[pyo3(signature = (number = None))]
fn step(number: Option<u64>) -> u64 {
    plimsoll_live::step_ended();
    number.map_or_else(next_step, |number| {
        set_step(number);
        number
    })
}

/// Says that an epoch begins with the next step: the next one, or the given one. Returns its
/// number.
#[pyfunction]
#[pyo3(signature = (number = None))]
fn epoch(number: Option<u64>) -> u64 {
    number.map_or_else(next_epoch, |number| {
        set_epoch(number);
        number
    })
}

/// Ledger rows as dictionaries.
pub(crate) fn rows<'py>(py: Python<'py>, rows: &[BreakdownRow]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in rows {
        let origin = row.origin.get();
        let site = origin.site.resolve();
        let dict = PyDict::new(py);
        dict.set_item("operation", origin.operation)?;
        dict.set_item("file", site.as_ref().map(|site| site.file.as_str()))?;
        dict.set_item("line", site.as_ref().map(|site| site.line))?;
        dict.set_item("function", site.as_ref().map(|site| site.function.as_str()))?;
        dict.set_item("module", origin.module.to_string())?;
        dict.set_item("phase", origin.phase.to_string())?;
        dict.set_item("kind", row.kind.to_string())?;
        dict.set_item("bytes", row.bytes)?;
        dict.set_item("count", row.count)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// File, line and operation that asked for a tensor's memory; None where that is not known.
#[pyfunction]
fn _origin(tensor: &Bound<'_, PyTensor>) -> Option<(String, u32, &'static str)> {
    let origin = memory::origin(&tensor.tensor())?.get();
    let site = origin.site.resolve()?;
    Some((site.file, site.line, origin.operation))
}

/// The peaks of a region: `with peak_scope() as peak: ...; peak.allocated_bytes`. Nothing disturbs
/// it.
#[pyclass(name = "peak_scope", module = "plimsoll")]
struct PyPeakScope {
    arena: &'static Arena,
    open: Option<PeakScope>,
    /// Allocated and reserved bytes once the region is over.
    closed: (usize, usize),
}

#[pymethods]
impl PyPeakScope {
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<DeviceArg>) -> PyPeakScope {
        PyPeakScope { arena: arena(device), open: None, closed: (0, 0) }
    }

    fn __enter__(mut slf: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        slf.open = Some(slf.arena.scoped_peak());
        slf
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&mut self, _failure: &Bound<'_, pyo3::types::PyTuple>) {
        self.closed = (self.allocated_bytes(), self.reserved_bytes());
        self.open = None;
    }

    /// The highest number of allocated bytes in the region so far.
    #[getter]
    fn allocated_bytes(&self) -> usize {
        self.open.as_ref().map_or(self.closed.0, PeakScope::allocated_bytes_peak)
    }

    /// The highest number of reserved bytes in the region so far.
    #[getter]
    fn reserved_bytes(&self) -> usize {
        self.open.as_ref().map_or(self.closed.1, PeakScope::reserved_bytes_peak)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPeakScope>()?;
    module.add_function(wrap_pyfunction!(memory_allocated, module)?)?;
    module.add_function(wrap_pyfunction!(max_memory_allocated, module)?)?;
    module.add_function(wrap_pyfunction!(memory_reserved, module)?)?;
    module.add_function(wrap_pyfunction!(max_memory_reserved, module)?)?;
    module.add_function(wrap_pyfunction!(memory_external, module)?)?;
    module.add_function(wrap_pyfunction!(empty_cache, module)?)?;
    module.add_function(wrap_pyfunction!(memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(memory_summary, module)?)?;
    module.add_function(wrap_pyfunction!(reset_peak_memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(reset_accumulated_memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(set_memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(set_per_process_memory_fraction, module)?)?;
    module.add_function(wrap_pyfunction!(get_per_process_memory_fraction, module)?)?;
    module.add_function(wrap_pyfunction!(record_memory_history, module)?)?;
    module.add_function(wrap_pyfunction!(dump_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(_dump_snapshot_of, module)?)?;
    module.add_function(wrap_pyfunction!(memory_report, module)?)?;
    module.add_function(wrap_pyfunction!(_origin, module)?)?;
    module.add_function(wrap_pyfunction!(reset_memory_settings, module)?)?;
    module.add_function(wrap_pyfunction!(memory_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(memory_by_kind, module)?)?;
    module.add_function(wrap_pyfunction!(memory_by_module, module)?)?;
    module.add_function(wrap_pyfunction!(memory_by_phase, module)?)?;
    module.add_function(wrap_pyfunction!(step, module)?)?;
    module.add_function(wrap_pyfunction!(epoch, module)?)?;
    module.add_function(wrap_pyfunction!(memory_by_line, module)?)
}
