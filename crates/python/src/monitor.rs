//! The runtime's monitor and tracker for Python, under the classes of `python/plimsoll/monitor.py`.

use std::time::Duration;

use plimsoll_tensor::memory::{MemoryMonitor, MemorySeries, MemoryTracker};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::call::call;
use crate::device::DeviceArg;

/// Samples a device's memory until it is stopped.
#[pyclass(name = "_MemoryMonitor", module = "plimsoll", frozen)]
struct PyMemoryMonitor(parking_lot::Mutex<Option<MemoryMonitor>>);

/// What was sampled.
#[pyclass(name = "_MemorySeries", module = "plimsoll", frozen)]
struct PyMemorySeries(MemorySeries);

/// Seconds, and allocated, reserved, resident and other bytes.
type Sample = (f64, usize, usize, usize, usize);

#[pymethods]
impl PyMemoryMonitor {
    #[new]
    fn new(py: Python<'_>, device: DeviceArg, interval: f64) -> PyResult<PyMemoryMonitor> {
        let interval = Duration::try_from_secs_f64(interval)
            .map_err(|error| PyValueError::new_err(format!("the interval: {error}")))?;
        let monitor = call(py, || MemoryMonitor::start(device.0, interval))?;
        Ok(PyMemoryMonitor(parking_lot::Mutex::new(Some(monitor))))
    }

    fn so_far(&self) -> PyResult<PyMemorySeries> {
        let running = self.0.lock();
        Ok(PyMemorySeries(running.as_ref().ok_or_else(stopped)?.so_far()))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<PyMemorySeries> {
        let monitor = self.0.lock().take().ok_or_else(stopped)?;
        call(py, || Ok(PyMemorySeries(monitor.stop())))
    }
}

fn stopped() -> PyErr {
    PyRuntimeError::new_err("the monitor was stopped")
}

#[pymethods]
impl PyMemorySeries {
    #[getter]
    fn samples(&self) -> Vec<Sample> {
        let samples = self.0.samples.iter();
        let sample = samples.map(|of| {
            (of.seconds, of.allocated_bytes, of.reserved_bytes, of.resident_bytes, of.other_bytes)
        });
        sample.collect()
    }

    /// Allocated, reserved, resident and other bytes.
    #[getter]
    fn peak(&self) -> (usize, usize, usize, usize) {
        let peak = &self.0.peak;
        (peak.allocated_bytes, peak.reserved_bytes, peak.resident_bytes, peak.other_bytes)
    }

    fn to_csv(&self) -> String {
        self.0.to_csv()
    }

    fn to_svg(&self) -> String {
        self.0.to_svg()
    }
}

/// What a part of a program takes of a device.
#[pyclass(name = "_MemoryTracker", module = "plimsoll", frozen)]
struct PyMemoryTracker(parking_lot::Mutex<MemoryTracker>);

#[pymethods]
impl PyMemoryTracker {
    #[new]
    fn new(device: DeviceArg) -> PyMemoryTracker {
        PyMemoryTracker(parking_lot::Mutex::new(MemoryTracker::new(device.0)))
    }

    fn reset(&self) {
        self.0.lock().reset();
    }

    #[getter]
    fn start_bytes(&self) -> i64 {
        self.0.lock().start_bytes()
    }

    #[getter]
    fn allocated_bytes(&self) -> i64 {
        self.0.lock().allocated_bytes()
    }

    #[getter]
    fn peak_bytes(&self) -> i64 {
        self.0.lock().peak_bytes()
    }

    fn stats(&self, label: &str) -> String {
        self.0.lock().stats(label)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMemoryMonitor>()?;
    module.add_class::<PyMemorySeries>()?;
    module.add_class::<PyMemoryTracker>()
}
