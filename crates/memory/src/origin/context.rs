//! Where the program is while it asks for memory: the phase of training, the module path, the step.
//! Phase and module path belong to a thread and are scoped by guards; the step belongs to the
//! process. Origins read all but the step (see `intern.rs`); the step is stamped on blocks and
//! events, and tells the epoch (`iteration.rs`).

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use crate::origin::annotations::{self, Stage};
use crate::origin::calls;
use crate::platform::lock::Lock;

/// The part of a training iteration that is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Computing the result.
    Forward = 0,
    /// Computing gradients.
    Backward = 1,
    /// Updating parameters.
    Optimizer = 2,
    /// Anything else: loading, or no training at all.
    #[default]
    Other = 3,
    /// Computing results that nothing is learnt from.
    Evaluation = 4,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 5] =
        [Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::Other, Phase::Evaluation];

    const fn word(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Optimizer => "optimizer",
            Phase::Other => "other",
            Phase::Evaluation => "evaluation",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A path of module names such as `encoder.0.attention`, as a number into a process-wide table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ModulePath(u32);

impl ModulePath {
    /// Outside every module.
    pub const ROOT: ModulePath = ModulePath(0);

    /// Whether this is outside every module.
    pub const fn is_root(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// The path `name` inside this one; `name` may be a path itself.
    ///
    /// ```
    /// use plimsoll_memory::ModulePath;
    /// let encoder = ModulePath::ROOT.join("encoder");
    /// assert_eq!(encoder.join("0.attention").to_string(), "encoder.0.attention");
    /// assert_eq!(encoder.join("0").join("attention"), encoder.join("0.attention"));
    /// ```
    #[must_use]
    pub fn join(self, name: &str) -> ModulePath {
        let mut table = MODULES.lock();
        let table = table.get_or_insert_default();
        let path = match self.0 {
            0 => name.to_string(),
            parent => format!("{}.{name}", table.paths[parent as usize - 1]),
        };
        if let Some(&number) = table.numbers.get(&path) {
            return ModulePath(number);
        }
        table.paths.push(path.clone());
        let number = u32::try_from(table.paths.len()).unwrap_or(0);
        table.numbers.insert(path, number);
        ModulePath(number)
    }
}

impl fmt::Display for ModulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.pad("");
        }
        let path = MODULES.lock().as_ref().map(|table| table.paths[self.0 as usize - 1].clone());
        f.pad(path.as_deref().unwrap_or(""))
    }
}

impl fmt::Debug for ModulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModulePath({self})")
    }
}

/// Every module path seen, numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct ModuleTable {
    paths: Vec<String>,
    numbers: HashMap<String, u32>,
}

pub(crate) static MODULES: Lock<Option<ModuleTable>> = Lock::new(None);

thread_local! {
    static PHASE: Cell<Phase> = const { Cell::new(Phase::Other) };
    static MODULE: Cell<ModulePath> = const { Cell::new(ModulePath::ROOT) };
    static OPERATION: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The phase in force on this thread.
#[inline]
pub fn current_phase() -> Phase {
    PHASE.try_with(Cell::get).unwrap_or_default()
}

/// The module path in force on this thread.
#[inline]
pub fn current_module() -> ModulePath {
    MODULE.try_with(Cell::get).unwrap_or_default()
}

/// The name under which the user called what runs on this thread, if that is not the operation's
/// own.
#[inline]
pub fn current_operation() -> Option<&'static str> {
    OPERATION.try_with(Cell::get).ok().flatten()
}

/// While this guard lives, origins made on this thread carry its phase.
#[derive(Debug)]
pub struct PhaseScope {
    phase: Phase,
    previous: Phase,
    not_send: PhantomData<*const ()>,
}

/// Enters a phase of training on this thread, until the guard drops.
#[must_use = "the phase is in force only while the guard lives"]
pub fn enter_phase(phase: Phase) -> PhaseScope {
    annotations::mark(Stage::Start, || phase.word().into());
    let previous = PHASE.try_with(|current| current.replace(phase)).unwrap_or_default();
    PhaseScope { phase, previous, not_send: PhantomData }
}

impl Drop for PhaseScope {
    fn drop(&mut self) {
        let _ = PHASE.try_with(|current| current.set(self.previous));
        annotations::mark(Stage::End, || self.phase.word().into());
    }
}

/// While this guard lives, origins made on this thread carry its module path.
#[derive(Debug)]
pub struct ModuleScope {
    previous: ModulePath,
    not_send: PhantomData<*const ()>,
}

/// Enters module `name` on this thread, inside the one in force, until the guard drops.
///
/// ```
/// use plimsoll_memory::{current_module, enter_module};
/// let _outer = enter_module("encoder");
/// let _inner = enter_module("0");
/// assert_eq!(current_module().to_string(), "encoder.0");
/// ```
#[must_use = "the module is in force only while the guard lives"]
pub fn enter_module(name: &str) -> ModuleScope {
    resume_module(current_module().join(name))
}

/// Enters a path that was in force earlier, perhaps on another thread; backward does so for the
/// module of the forward operation.
#[must_use = "the module is in force only while the guard lives"]
pub fn resume_module(path: ModulePath) -> ModuleScope {
    let previous = MODULE.try_with(|current| current.replace(path)).unwrap_or_default();
    ModuleScope { previous, not_send: PhantomData }
}

impl Drop for ModuleScope {
    fn drop(&mut self) {
        let _ = MODULE.try_with(|current| current.set(self.previous));
    }
}

/// While this guard lives, origins made on this thread carry its operation's name.
#[derive(Debug)]
pub struct OperationScope {
    outermost: bool,
    /// Whether observers were told that it begins.
    told: bool,
    not_send: PhantomData<*const ()>,
}

/// Says that the user called `name` (`zeros`, `contiguous`), whichever operations do its work.
/// Inside another such call it says nothing: the outermost one is what the user wrote.
///
/// ```
/// use plimsoll_memory::{OriginId, Site, enter_operation};
/// let _zeros = enter_operation("zeros");
/// let _inner = enter_operation("full_like");
/// assert_eq!(OriginId::intern("full", Site::caller()).get().operation, "zeros");
/// ```
#[must_use = "the name is in force only while the guard lives"]
#[inline]
pub fn enter_operation(name: &'static str) -> OperationScope {
    let outermost = OPERATION.try_with(|current| match current.get() {
        None => {
            current.set(Some(name));
            true
        }
        Some(_) => false,
    });
    let outermost = outermost == Ok(true);
    OperationScope { outermost, told: outermost && calls::entered(name), not_send: PhantomData }
}

impl Drop for OperationScope {
    #[inline]
    fn drop(&mut self) {
        if self.outermost {
            if self.told {
                calls::left();
            }
            let _ = OPERATION.try_with(|current| current.set(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_nest_and_end() {
        assert_eq!(current_phase(), Phase::Other);
        let outer = enter_phase(Phase::Forward);
        {
            let _inner = enter_phase(Phase::Backward);
            assert_eq!(current_phase(), Phase::Backward);
        }
        assert_eq!(current_phase(), Phase::Forward);
        drop(outer);
        assert_eq!(current_phase(), Phase::Other);
    }

    #[test]
    fn equal_paths_are_one_number() {
        let once = {
            let _a = enter_module("block.1");
            let _b = enter_module("mlp");
            current_module()
        };
        let again = {
            let _a = enter_module("block");
            let _b = enter_module("1");
            let _c = enter_module("mlp");
            current_module()
        };
        assert_eq!(once, again);
        assert_eq!(once.to_string(), "block.1.mlp");
        assert!(current_module().is_root());
    }
}
