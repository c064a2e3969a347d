//! Functions that run before and after each step of one optimizer.

use std::fmt;

use plimsoll_tensor::Result;

type Hook<O> = Box<dyn FnMut(&mut O) -> Result<()> + Send>;

/// Hooks by their numbers.
type HookList<O> = Vec<(u64, Hook<O>)>;

/// The hooks of an optimizer of type `O`.
pub(super) struct StepHooks<O> {
    made: u64,
    before: HookList<O>,
    after: HookList<O>,
}

/// Which hook it is, to remove it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepHook(u64);

impl<O> Default for StepHooks<O> {
    fn default() -> StepHooks<O> {
        StepHooks { made: 0, before: Vec::new(), after: Vec::new() }
    }
}

impl<O> StepHooks<O> {
    fn next(&mut self) -> StepHook {
        self.made += 1;
        StepHook(self.made)
    }

    pub(super) fn add_before(&mut self, hook: Hook<O>) -> StepHook {
        let id = self.next();
        self.before.push((id.0, hook));
        id
    }

    pub(super) fn add_after(&mut self, hook: Hook<O>) -> StepHook {
        let id = self.next();
        self.after.push((id.0, hook));
        id
    }

    /// Whether there was such a hook.
    pub(super) fn remove(&mut self, hook: StepHook) -> bool {
        let count = self.before.len() + self.after.len();
        self.before.retain(|(id, _)| *id != hook.0);
        self.after.retain(|(id, _)| *id != hook.0);
        self.before.len() + self.after.len() < count
    }
}

/// Runs `step` between the hooks. They are taken out while they run, since they are given the
/// optimizer; hooks that they add come after them.
pub(super) fn between_hooks<O, R>(
    optimizer: &mut O,
    hooks: impl Fn(&mut O) -> &mut StepHooks<O>,
    step: impl FnOnce(&mut O) -> Result<R>,
) -> Result<R> {
    let run = |optimizer: &mut O, list: fn(&mut StepHooks<O>) -> &mut HookList<O>| {
        if list(hooks(optimizer)).is_empty() {
            return Ok(());
        }
        let mut taken = std::mem::take(list(hooks(optimizer)));
        let outcome = taken.iter_mut().try_for_each(|(_, hook)| hook(optimizer));
        let added = std::mem::replace(list(hooks(optimizer)), taken);
        list(hooks(optimizer)).extend(added);
        outcome
    };
    run(optimizer, |hooks| &mut hooks.before)?;
    let result = step(optimizer)?;
    run(optimizer, |hooks| &mut hooks.after)?;
    Ok(result)
}

impl<O> fmt::Debug for StepHooks<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepHooks({} before, {} after)", self.before.len(), self.after.len())
    }
}
