//! Which modules are running on this thread, and under which path each of them is.
//!
//! Modules do not know their names: a struct's fields have them. So a call looks for the module
//! among the fields of the one that is running, by address and type, and enters
//! `path of the caller . name of the field`. That needs nothing stored in modules and no setup, and
//! it stays right when a module moves, is replaced or is shared. Refused: names written into the
//! modules at construction (a struct literal has no place to do it), and a table of addresses (an
//! address is used again).
//!
//! The outermost module has the path that is in force when it is called, usually the empty one, so
//! that paths read as keys do: `blocks.3.attention.query`. Its call is a phase of training, forward
//! or, where nothing is recorded, evaluation, unless the user has said which.

use std::cell::RefCell;

use plimsoll_memory::{
    ModulePath, ModuleScope, Phase, PhaseScope, current_module, current_phase, enter_phase,
    resume_module,
};
use plimsoll_tensor::is_grad_enabled;
use rustc_hash::FxHashMap;

use crate::locate::names_of;
use crate::{Module, Name, walk};

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static PATHS: RefCell<Paths> = RefCell::new(Paths::default());
}

/// One running module.
#[derive(Clone, Copy)]
struct Frame(*const dyn Module);

/// While it lives, a module runs: its path is in force, and it is who calls others.
pub(crate) struct Entered {
    _module: ModuleScope,
    _phase: Option<PhaseScope>,
}

impl Entered {
    /// Begins a call. The guard must not outlive the borrow of `module`; it is dropped by
    /// `Forward::call` and by the layers' other calls, which have the module borrowed.
    pub(crate) fn enter(module: &dyn Module) -> Entered {
        let outer = FRAMES.with_borrow(|frames| frames.last().copied());
        let base = current_module();
        let mut phase = None;
        let path = match outer {
            None => {
                if current_phase() == Phase::Other {
                    let recorded = is_grad_enabled();
                    let is = if recorded { Phase::Forward } else { Phase::Evaluation };
                    phase = Some(enter_phase(is));
                }
                base
            }
            Some(Frame(outer)) => {
                // SAFETY: a frame is pushed by `enter` and popped when its guard drops. The guard
                // is a local of a call (`enter`), which borrows the module for longer than that and
                // runs on this thread, so the module that the topmost frame points to is alive and
                // borrowed now.
                let outer = unsafe { &*outer };
                path_below(base, outer, module)
            }
        };
        // SAFETY: only the lifetime changes, not the type. The pointer is read while the frame is
        // on the stack, see above.
        let erased = unsafe {
            std::mem::transmute::<*const (dyn Module + '_), *const (dyn Module + 'static)>(module)
        };
        FRAMES.with_borrow_mut(|frames| frames.push(Frame(erased)));
        Entered { _module: resume_module(path), _phase: phase }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // A thread that is shutting down has no frames any more.
        let _ = FRAMES.try_with(|frames| frames.borrow_mut().pop());
    }
}

/// The path of `module`, called by `outer` while `base` is in force.
fn path_below(base: ModulePath, outer: &dyn Module, module: &dyn Module) -> ModulePath {
    if walk::is_same(outer, module) {
        return base;
    }
    let names = names_of(outer, module);
    PATHS.with_borrow_mut(|paths| {
        if names.is_empty() {
            // Made by its caller, such as a loss: it has no name but its type's.
            return paths.child(base, Name::Field(module.type_name()));
        }
        names.iter().rev().fold(base, |path, name| paths.child(path, *name))
    })
}

/// Paths that this thread has asked for, so that a call neither writes texts nor takes a lock.
#[derive(Default)]
struct Paths {
    /// By a field's name, which is where it lies in the program, or an index.
    fixed: FxHashMap<(ModulePath, usize, usize), ModulePath>,
    by_key: FxHashMap<ModulePath, FxHashMap<String, ModulePath>>,
}

impl Paths {
    fn child(&mut self, parent: ModulePath, name: Name<'_>) -> ModulePath {
        let key = match name {
            // No text is empty here: an index is told from a name by its length.
            Name::Field(name) => (parent, name.as_ptr().addr(), name.len()),
            Name::Index(index) => (parent, index, 0),
            Name::Key(name) => {
                let known = self.by_key.get(&parent).and_then(|names| names.get(name));
                return known.copied().unwrap_or_else(|| {
                    let path = parent.join(name);
                    self.by_key.entry(parent).or_default().insert(name.to_string(), path);
                    path
                });
            }
        };
        if let Some(known) = self.fixed.get(&key) {
            return *known;
        }
        let path = parent.join(&name.to_string());
        self.fixed.insert(key, path);
        path
    }
}
