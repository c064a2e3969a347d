//! Calls of `plimsoll.nn` modules: while `forward` runs, the module's path is in force, so that its
//! bytes are booked under it. Paths are those of the outermost module that runs, as its
//! `named_modules` has them; its call is a phase of training too, forward or, where nothing is
//! recorded, evaluation.
//!
//! Paths are looked up once for all modules of a tree, and again when any module was made, changed
//! or moved since ([`_modules_changed`]). So a module found by its address is the one that was
//! named: another one at the same address would have been made since.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{
    ModulePath, Phase, current_module, current_phase, enter_phase, resume_module,
};
use plimsoll_tensor::is_grad_enabled;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::tensor::PyTensor;

/// How often modules were made, changed or moved.
static CHANGES: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static RUNNING: RefCell<Running> = RefCell::new(Running::default());
}

/// The outermost module that runs on a thread, and the paths in its tree.
#[derive(Default)]
struct Running {
    outermost: Option<Py<PyAny>>,
    /// Of the tree whose outermost module has this address, as it was after so many changes.
    named: Option<(usize, u64)>,
    paths: HashMap<usize, ModulePath>,
}

/// Says that a module was made, that a tree of modules changed, or that parameters moved.
#[pyfunction]
fn _modules_changed() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// Runs `forward` in the name of `module`.
#[pyfunction]
fn _call_module<'py>(
    module: &Bound<'py, PyAny>,
    forward: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_outermost = RUNNING.with_borrow(|running| running.outermost.is_none());
    if !is_outermost {
        let _module = resume_module(path_of(module)?);
        return forward.call(args, Some(kwargs));
    }
    /// Ends the outermost call, however it ends.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            // Dropped outside of the borrow: what that frees may run Python.
            let outermost = RUNNING.try_with(|running| running.borrow_mut().outermost.take());
            drop(outermost);
        }
    }
    RUNNING.with_borrow_mut(|running| running.outermost = Some(module.clone().unbind()));
    let _ends = Ends;
    name_modules(module)?;
    let _phase = (current_phase() == Phase::Other)
        .then(|| enter_phase(if is_grad_enabled() { Phase::Forward } else { Phase::Evaluation }));
    forward.call(args, Some(kwargs))
}

/// The path of a module that another one calls.
fn path_of(module: &Bound<'_, PyAny>) -> PyResult<ModulePath> {
    let at = module.as_ptr().addr();
    let found = |running: &Running| {
        let (outermost, changes) = running.named?;
        let is_new = changes == CHANGES.load(Ordering::Relaxed)
            && running.outermost.as_ref().is_some_and(|one| one.as_ptr().addr() == outermost);
        is_new.then(|| running.paths.get(&at).copied())
    };
    if let Some(known) = RUNNING.with_borrow(found) {
        return known.map_or_else(|| path_by_type(module), Ok);
    }
    let outermost = RUNNING
        .with_borrow(|running| running.outermost.as_ref().map(|one| one.clone_ref(module.py())));
    if let Some(outermost) = outermost {
        name_modules(outermost.bind(module.py()))?;
    }
    let known = RUNNING.with_borrow(|running| running.paths.get(&at).copied());
    known.map_or_else(|| path_by_type(module), Ok)
}

/// A module that is in no tree, such as a loss made on the spot, has no name but its type's.
fn path_by_type(module: &Bound<'_, PyAny>) -> PyResult<ModulePath> {
    let name = module.get_type().name()?;
    Ok(current_module().join(&name.to_string_lossy()))
}

/// Names every module of a tree, and books what they own under their paths, unless nothing changed
/// since the last time.
fn name_modules(outermost: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = outermost.py();
    let now = (outermost.as_ptr().addr(), CHANGES.load(Ordering::Relaxed));
    if RUNNING.with_borrow(|running| running.named == Some(now)) {
        return Ok(());
    }
    let base = current_module();
    let mut paths = HashMap::new();
    for named in outermost.call_method0(intern!(py, "named_modules"))?.try_iter()? {
        let (name, module) = named?.extract::<(String, Bound<'_, PyAny>)>()?;
        let path = if name.is_empty() { base } else { base.join(&name) };
        paths.entry(module.as_ptr().addr()).or_insert(path);
        if path.is_root() {
            continue;
        }
        for table in [intern!(py, "_parameters"), intern!(py, "_buffers")] {
            for tensor in module.getattr(table)?.call_method0(intern!(py, "values"))?.try_iter()? {
                if let Ok(tensor) = tensor?.cast::<PyTensor>() {
                    tensor.get().tensor().mark_module(path);
                }
            }
        }
    }
    RUNNING.with_borrow_mut(|running| {
        running.named = Some(now);
        running.paths = paths;
    });
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_modules_changed, module)?)?;
    module.add_function(wrap_pyfunction!(_call_module, module)?)
}
