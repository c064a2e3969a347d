//! Calls of `plimsoll.nn` modules: while `forward` runs, the module's path is in force, so that its
//! bytes are booked under it. Paths are those of the outermost module that runs, as its
//! `named_modules` has them; its call is a phase of training too, forward or, where nothing is
//! recorded, evaluation.
//!
//! Paths are looked up once for all modules of a tree, and again when any module got a part or was
//! moved since ([`_modules_changed`]). They are kept by address, each with a weak reference: a
//! module found by its address is the one that was named only if that one is still alive. A module
//! that was made and is part of nothing, such as `ReLU()(x)` in a forward, changes no tree; looking
//! all paths up again for each of them made a call take time by the square of its modules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{
    ModulePath, Phase, current_module, current_phase, enter_phase, resume_module,
};
use plimsoll_tensor::is_grad_enabled;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::tensor::{PyTensor, TensorObject};

/// How often modules got parts or were moved.
static CHANGES: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static RUNNING: RefCell<Running> = RefCell::new(Running::default());
}

/// The outermost module that runs on a thread, and the trees whose modules have names.
#[derive(Default)]
struct Running {
    /// With the path that was in force when it was called.
    outermost: Option<(Py<PyAny>, ModulePath)>,
    /// By the address of their outermost modules: a program calls several in turn, a network and
    /// its loss, and each keeps its names.
    trees: HashMap<usize, Tree>,
}

/// Trees that a thread remembers; then it forgets all.
const MOST_TREES: usize = 64;

/// The modules of a tree, as they were after so many changes.
struct Tree {
    changes: u64,
    /// The path of its outermost module.
    base: ModulePath,
    modules: HashMap<usize, Named>,
}

/// A module of a tree.
struct Named {
    module: Py<PyWeakrefReference>,
    path: ModulePath,
}

impl Tree {
    /// The path of a module, if it is in the tree.
    fn path(&self, module: &Bound<'_, PyAny>) -> Option<ModulePath> {
        let named = self.modules.get(&module.as_ptr().addr())?;
        let alive = named.module.bind(module.py()).upgrade()?;
        alive.is(module).then_some(named.path)
    }
}

impl Running {
    /// The tree of the outermost module at an address, if its names are still right.
    fn tree(&self, at: usize, base: ModulePath) -> Option<&Tree> {
        let tree = self.trees.get(&at)?;
        let changes = CHANGES.load(Ordering::Relaxed);
        (tree.changes == changes && tree.base == base).then_some(tree)
    }
}

/// Says that a tree of modules changed, that a module got a parameter or a buffer, or that these
/// moved.
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
    let base = current_module();
    RUNNING.with_borrow_mut(|running| running.outermost = Some((module.clone().unbind(), base)));
    let _ends = Ends;
    name_modules(module, base)?;
    let _phase = (current_phase() == Phase::Other)
        .then(|| enter_phase(if is_grad_enabled() { Phase::Forward } else { Phase::Evaluation }));
    forward.call(args, Some(kwargs))
}

/// The path of a module that another one calls.
fn path_of(module: &Bound<'_, PyAny>) -> PyResult<ModulePath> {
    let py = module.py();
    let found = |running: &Running| {
        let (outermost, base) = running.outermost.as_ref()?;
        Some(running.tree(outermost.as_ptr().addr(), *base)?.path(module))
    };
    if let Some(known) = RUNNING.with_borrow(found) {
        return known.map_or_else(|| path_by_type(module), Ok);
    }
    let outermost = RUNNING.with_borrow(|running| {
        running.outermost.as_ref().map(|(outermost, base)| (outermost.clone_ref(py), *base))
    });
    if let Some((outermost, base)) = outermost {
        name_modules(outermost.bind(py), base)?;
    }
    let known = RUNNING.with_borrow(found).flatten();
    known.map_or_else(|| path_by_type(module), Ok)
}

/// A module that is in no tree, such as a loss made on the spot, has no name but its type's.
fn path_by_type(module: &Bound<'_, PyAny>) -> PyResult<ModulePath> {
    let name = module.get_type().name()?;
    Ok(current_module().join(&name.to_string_lossy()))
}

/// Names every module of a tree, and books what they own under their paths, unless nothing changed
/// since the last time.
fn name_modules(outermost: &Bound<'_, PyAny>, base: ModulePath) -> PyResult<()> {
    let (py, at) = (outermost.py(), outermost.as_ptr().addr());
    let changes = CHANGES.load(Ordering::Relaxed);
    let known = |running: &Running| running.tree(at, base)?.path(outermost);
    if RUNNING.with_borrow(known).is_some() {
        return Ok(());
    }
    let mut modules = HashMap::new();
    for named in outermost.call_method0(intern!(py, "named_modules"))?.try_iter()? {
        let (name, module) = named?.extract::<(String, Bound<'_, PyAny>)>()?;
        let path = if name.is_empty() { base } else { base.join(&name) };
        let weak = || PyWeakrefReference::new(&module).map(Bound::unbind);
        if let Entry::Vacant(place) = modules.entry(module.as_ptr().addr()) {
            place.insert(Named { module: weak()?, path });
        }
        if path.is_root() {
            continue;
        }
        for table in [intern!(py, "_parameters"), intern!(py, "_buffers")] {
            for tensor in module.getattr(table)?.call_method0(intern!(py, "values"))?.try_iter()? {
                if let Ok(tensor) = tensor?.cast::<PyTensor>() {
                    tensor.tensor().mark_module(path);
                }
            }
        }
    }
    // What was there is dropped outside of the borrow: a weak reference that goes may run Python.
    let before = RUNNING.with_borrow_mut(|running| {
        let is_full = running.trees.len() >= MOST_TREES;
        let is_old = running.trees.values().any(|tree| tree.changes != changes);
        let all =
            if is_full || is_old { std::mem::take(&mut running.trees) } else { HashMap::new() };
        (all, running.trees.insert(at, Tree { changes, base, modules }))
    });
    drop(before);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_modules_changed, module)?)?;
    module.add_function(wrap_pyfunction!(_call_module, module)?)
}
