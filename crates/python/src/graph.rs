//! A captured graph as Python holds it: nothing yet, a capture that is open, or a graph. PyTorch's
//! `CUDAGraph` over it, and how captures share pools, is the package's (`cuda/graphs.py`).

use std::sync::Arc;

use parking_lot::Mutex;
use plimsoll_tensor::{Graph, GraphCapture};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::call::call;
use crate::pool::PyMemPool;
use crate::random::PyGenerator;
use crate::stream::PyStream;

#[derive(Debug, Default)]
enum State {
    #[default]
    Empty,
    Capturing(GraphCapture),
    /// Shared with whoever replays it: what looks at launches may need the interpreter, so that
    /// nobody may wait for the lock meanwhile.
    Ready(Arc<Graph>),
}

/// Work that is captured on a stream, and then replayed.
#[pyclass(name = "_Graph", module = "plimsoll", frozen)]
#[derive(Debug, Default)]
struct PyGraph(Mutex<State>);

#[pymethods]
impl PyGraph {
    #[new]
    fn new() -> PyGraph {
        PyGraph::default()
    }

    /// Has the stream write down what it is given, into memory of the pool.
    fn begin(
        &self,
        py: Python<'_>,
        stream: &Bound<'_, PyStream>,
        pool: &Bound<'_, PyMemPool>,
        generators: Vec<Bound<'_, PyGenerator>>,
    ) -> PyResult<()> {
        let (stream, pool) = (stream.get().stream(), pool.get().pool().clone());
        let generators: Vec<_> = generators.iter().map(|one| one.get().generator()).collect();
        let capture = call(py, || GraphCapture::begin(&stream, Some(&pool), &generators))?;
        *self.0.lock() = State::Capturing(capture);
        Ok(())
    }

    /// Ends the capture.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let state = std::mem::take(&mut *self.0.lock());
        match state {
            State::Capturing(capture) => {
                let graph = call(py, || capture.end())?;
                *self.0.lock() = State::Ready(Arc::new(graph));
                Ok(())
            }
            other => {
                *self.0.lock() = other;
                Err(PyRuntimeError::new_err("capture_end: no capture of this graph is open"))
            }
        }
    }

    /// Queues all of it on the thread's stream.
    fn replay(&self, py: Python<'_>) -> PyResult<()> {
        let graph = match &*self.0.lock() {
            State::Ready(graph) => graph.clone(),
            _ => return Err(PyRuntimeError::new_err("replay: this graph has not been captured")),
        };
        call(py, move || graph.replay())
    }

    /// Forgets the graph, or the capture.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let state = std::mem::take(&mut *self.0.lock());
        call(py, || {
            drop(state);
            Ok(())
        })
    }

    /// Whether there is something to replay.
    #[getter]
    fn is_ready(&self) -> bool {
        matches!(*self.0.lock(), State::Ready(_))
    }

    /// How many kernels, copies and other pieces of work it holds.
    #[getter]
    fn nodes(&self) -> usize {
        match &*self.0.lock() {
            State::Ready(graph) => graph.nodes(),
            _ => 0,
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraph>()
}
