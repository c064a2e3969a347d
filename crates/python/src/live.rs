//! Figures of this process for `plimsoll top`, served from Python. The package's `_serve_live.py`
//! is what users call; the socket and what is said on it are the crate `plimsoll-live`'s.

use parking_lot::Mutex;
use plimsoll_live::{Server, ledger_figures};
use pyo3::prelude::*;

use crate::call::call;

/// Serves figures until it is closed or dropped.
#[pyclass(name = "_LiveServer", module = "plimsoll", frozen)]
struct PyLiveServer {
    server: Mutex<Option<Server>>,
}

#[pymethods]
impl PyLiveServer {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<PyLiveServer> {
        let figures = ledger_figures(name);
        let server = call(py, || Server::start(figures))?;
        Ok(PyLiveServer { server: Mutex::new(Some(server)) })
    }

    /// The socket's path; None once closed.
    #[getter]
    fn path(&self) -> Option<String> {
        self.server.lock().as_ref().map(|server| server.path().display().to_string())
    }

    /// Ends it and removes the socket.
    fn close(&self, py: Python<'_>) {
        let server = self.server.lock().take();
        // Its threads may be waiting for the interpreter, to name a line.
        py.detach(|| drop(server));
    }
}

impl Drop for PyLiveServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.get_mut().take() {
            Python::attach(|py| py.detach(|| drop(server)));
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLiveServer>()
}
