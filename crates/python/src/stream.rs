//! Streams and events of a device as Python objects, under PyTorch's names. What is current, and
//! for how long, is the package's (`cuda/streams.py`).

use std::hash::{Hash, Hasher};

use parking_lot::Mutex;
use plimsoll_core::Device;
use plimsoll_tensor::device::{Stream, StreamScope, TimedEvent};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::call::call;
use crate::device::{DeviceArg, PyDevice, named};
use crate::error::to_python;
use crate::tensor::PyTensor;

/// The device that is named, or the current GPU.
fn place(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<Device> {
    device.map_or_else(|| named(py, "cuda"), |device| Ok(device.0))
}

/// A queue of work on a device.
#[pyclass(name = "Stream", module = "plimsoll", frozen, eq, hash, subclass)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyStream {
    stream: Stream,
    priority: i32,
}

impl PartialEq for PyStream {
    fn eq(&self, other: &PyStream) -> bool {
        self.stream == other.stream
    }
}

impl Eq for PyStream {}

impl Hash for PyStream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.stream.hash(state);
    }
}

impl PyStream {
    fn of(stream: Stream) -> PyStream {
        PyStream { stream, priority: 0 }
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }
}

#[pymethods]
impl PyStream {
    /// Another stream of the device; priorities below 0 are more urgent.
    #[new]
    #[pyo3(signature = (device = None, priority = 0))]
    fn new(py: Python<'_>, device: Option<DeviceArg>, priority: i32) -> PyResult<PyStream> {
        let stream = Stream::with_priority(place(py, device)?, priority.clamp(-3, 0));
        let stream = stream.map_err(|error| to_python(py, error))?;
        Ok(PyStream { stream, priority: priority.clamp(-3, 0) })
    }

    /// Waits until everything queued so far has run.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.stream.synchronize())
    }

    /// Whether everything queued so far has run.
    fn query(&self) -> bool {
        self.stream.query()
    }

    /// Whether a graph is being captured here.
    #[getter]
    fn _is_capturing(&self) -> bool {
        self.stream.is_capturing()
    }

    /// Records an event here: the given one, or a new one.
    #[pyo3(signature = (event = None))]
    fn record_event<'py>(
        &self,
        py: Python<'py>,
        event: Option<Bound<'py, PyEvent>>,
    ) -> PyResult<Bound<'py, PyEvent>> {
        let event = match event {
            Some(event) => event,
            None => Bound::new(py, PyEvent::default())?,
        };
        event.get().record_on(self.stream);
        Ok(event)
    }

    /// Makes work queued here from now on wait for the event; one that was never recorded is past.
    fn wait_event(&self, py: Python<'_>, event: &Bound<'_, PyEvent>) -> PyResult<()> {
        event
            .get()
            .recorded()
            .map_or(Ok(()), |point| call(py, || self.stream.wait_event(point.event())))
    }

    /// Makes work queued here from now on wait for everything that the other one has been given.
    fn wait_stream(&self, py: Python<'_>, stream: &Bound<'_, PyStream>) -> PyResult<()> {
        let other = stream.get().stream;
        call(py, || self.stream.wait_stream(&other))
    }

    /// The device whose stream this is.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.stream.device())
    }

    /// Its number, as history and snapshots show it.
    #[getter]
    fn stream_id(&self) -> u64 {
        self.stream.id()
    }

    /// The driver's own number for it; 0 for the default stream, and where there is no GPU.
    #[getter]
    fn cuda_stream(&self) -> usize {
        self.stream.raw().unwrap_or(0)
    }

    /// How urgent it is: 0, or less for more urgent.
    #[getter]
    fn priority(&self) -> i32 {
        self.priority
    }

    fn __repr__(&self) -> String {
        format!("<plimsoll.Stream device={} stream_id={}>", self.stream.device(), self.stream.id())
    }
}

/// A point in a stream's queue, which may be recorded again and again.
#[pyclass(name = "Event", module = "plimsoll", frozen, subclass)]
#[derive(Debug, Default)]
pub(crate) struct PyEvent {
    device: Option<Device>,
    enable_timing: bool,
    recorded: Mutex<Option<TimedEvent>>,
}

impl PyEvent {
    fn recorded(&self) -> Option<TimedEvent> {
        self.recorded.lock().clone()
    }

    /// The stream that is given, or the current one of its device.
    fn stream_or_current(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyStream>>,
    ) -> PyResult<Stream> {
        match stream {
            Some(stream) => Ok(stream.get().stream),
            None => Ok(Stream::current(place(py, self.device.map(DeviceArg))?)),
        }
    }

    fn record_on(&self, stream: Stream) {
        let point = stream.record_timed_event();
        *self.recorded.lock() = Some(point);
    }
}

#[pymethods]
impl PyEvent {
    /// An event; with `enable_timing` two of them tell the time between them.
    #[new]
    #[pyo3(signature = (enable_timing = false, blocking = false, interprocess = false, external = false, *, device = None))]
    fn new(
        enable_timing: bool,
        blocking: bool,
        interprocess: bool,
        external: bool,
        device: Option<DeviceArg>,
    ) -> PyResult<PyEvent> {
        // Waiting never spins here, so `blocking` changes nothing.
        let _ = blocking;
        if interprocess || external {
            return Err(PyValueError::new_err(
                "Event: events are not shared between processes or graphs",
            ));
        }
        let device = device.map(|device| device.0);
        Ok(PyEvent { device, enable_timing, recorded: Mutex::new(None) })
    }

    /// Moves it to the end of a stream: the given one, or the current one of its device.
    #[pyo3(signature = (stream = None))]
    fn record(&self, py: Python<'_>, stream: Option<&Bound<'_, PyStream>>) -> PyResult<()> {
        self.record_on(self.stream_or_current(py, stream)?);
        Ok(())
    }

    /// Makes a stream (the current one unless it is given) wait for it.
    #[pyo3(signature = (stream = None))]
    fn wait(&self, py: Python<'_>, stream: Option<&Bound<'_, PyStream>>) -> PyResult<()> {
        let Some(point) = self.recorded() else { return Ok(()) };
        let stream = self.stream_or_current(py, stream)?;
        call(py, || stream.wait_event(point.event()))
    }

    /// Whether the work before it has run; it has if it was never recorded.
    fn query(&self) -> bool {
        self.recorded().is_none_or(|point| point.event().query())
    }

    /// Waits until the work before it has run.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.recorded().map_or(Ok(()), |point| call(py, || point.event().synchronize()))
    }

    /// Milliseconds from this event to a later one; both must have been passed.
    fn elapsed_time(&self, end_event: &Bound<'_, PyEvent>) -> PyResult<f64> {
        let end = end_event.get();
        if !self.enable_timing || !end.enable_timing {
            return Err(PyValueError::new_err(
                "elapsed_time: both events must be created with enable_timing=True",
            ));
        }
        let (Some(first), Some(last)) = (self.recorded(), end.recorded()) else {
            return Err(PyValueError::new_err("elapsed_time: both events must be recorded first"));
        };
        if !(first.event().query() && last.event().query()) {
            return Err(PyRuntimeError::new_err(
                "elapsed_time: the device has not passed both events; synchronize the later one",
            ));
        }
        match (last.since(&first), first.since(&last)) {
            (Some(time), _) if !time.is_zero() => Ok(time.as_secs_f64() * 1e3),
            (_, Some(back)) => Ok(-back.as_secs_f64() * 1e3),
            (Some(_), None) => Ok(0.0),
            (None, None) => {
                Err(PyRuntimeError::new_err("elapsed_time: the events are of different devices"))
            }
        }
    }

    fn __repr__(&self) -> String {
        let recorded = if self.recorded.lock().is_some() { "recorded" } else { "not recorded" };
        format!("<plimsoll.Event {recorded}>")
    }
}

/// A stream that this thread's work on its device goes to until `leave`.
#[pyclass(name = "_StreamScope", unsendable)]
struct Scope(Option<StreamScope>);

#[pymethods]
impl Scope {
    #[new]
    fn new(stream: &Bound<'_, PyStream>) -> Scope {
        Scope(Some(StreamScope::enter(&stream.get().stream)))
    }

    /// Puts back what was used before.
    fn leave(&mut self) {
        self.0 = None;
    }
}

/// The stream that this thread's work on a device goes to.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn _current_stream(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<PyStream> {
    Ok(PyStream::of(Stream::current(place(py, device)?)))
}

/// The stream that work on a device goes to unless another is named.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn _default_stream(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<PyStream> {
    Ok(PyStream::of(Stream::default_of(place(py, device)?)))
}

/// Sends this thread's work on the stream's device there from now on.
#[pyfunction]
fn _set_stream(stream: &Bound<'_, PyStream>) {
    stream.get().stream.make_current();
}

#[pymethods]
impl PyTensor {
    /// Says that a stream uses this tensor's memory; operations say so themselves.
    fn record_stream(&self, py: Python<'_>, stream: &Bound<'_, PyStream>) -> PyResult<()> {
        let stream = stream.get().stream;
        self.tensor(py).record_stream(&stream).map_err(|error| to_python(py, error))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStream>()?;
    module.add_class::<PyEvent>()?;
    module.add_class::<Scope>()?;
    module.add_function(wrap_pyfunction!(_current_stream, module)?)?;
    module.add_function(wrap_pyfunction!(_default_stream, module)?)?;
    module.add_function(wrap_pyfunction!(_set_stream, module)?)
}
