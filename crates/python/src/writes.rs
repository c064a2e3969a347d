//! Tells Python of writes to tensors that were there before, ahead of each: by this
//! `autograd.graph.allow_mutation_on_saved_tensors` copies what backward still needs.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use plimsoll_tensor::observe::{Call, Observer, Observing, observe};
use pyo3::prelude::*;

use crate::companion::wrap;

/// Hears of the writes of one thread.
struct Teller {
    thread: ThreadId,
    told: Py<PyAny>,
}

impl Observer for Teller {
    fn enter(&self, call: &Call<'_>) {
        // Threads whose writes nobody asked for never wait for the interpreter here.
        if call.written.is_empty() || thread::current().id() != self.thread {
            return;
        }
        Python::attach(|py| {
            for &tensor in call.written {
                let object = wrap(py, tensor.clone());
                if let Err(error) = object.and_then(|object| self.told.call1(py, (object,))) {
                    error.write_unraisable(py, None);
                }
            }
        });
    }
}

/// Calls `told(tensor)` ahead of each write of this thread, until `leave`.
#[pyclass(name = "_Writes", unsendable)]
struct PyWrites(Option<Observing>);

#[pymethods]
impl PyWrites {
    #[new]
    fn new(told: Py<PyAny>) -> PyWrites {
        let teller = Teller { thread: thread::current().id(), told };
        PyWrites(Some(observe(Arc::new(teller))))
    }

    fn leave(&mut self) {
        self.0 = None;
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWrites>()
}
