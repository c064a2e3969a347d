//! Functions that see the calls of one module: before `forward`, and after it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use plimsoll_tensor::{Error, Result, Tensor};

use crate::Module;
use crate::values::{Values, tensors};

/// Sees the module and the tensors of its input.
type Before = dyn Fn(&dyn Module, &[Tensor]) -> Result<()> + Send + Sync;
/// Sees the module, the tensors of its input and of its result, and may give others for the result.
type After = dyn Fn(&dyn Module, &[Tensor], &[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync;

/// The hooks of a module, as a field of it. Every layer has one; a struct of your own that has a
/// field of this type has hooks too.
///
/// ```
/// use plimsoll_nn::{Forward, Linear};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = Linear::new(2, 1)?;
/// let doubled = layer.hooks.after(|_, _, results| Ok(Some(vec![results[0].mul(2)?])));
/// let x = Tensor::ones(&[1, 2], DType::F32)?;
/// let with = layer.call(&x)?.item::<f32>()?;
/// doubled.remove();
/// assert_eq!(with, 2.0 * layer.call(&x)?.item::<f32>()?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Default)]
pub struct Hooks {
    /// Whether there are any, so that a call without looks at one byte.
    any: Arc<AtomicBool>,
    lists: Arc<Mutex<Lists>>,
}

#[derive(Default)]
struct Lists {
    made: u64,
    before: Vec<(u64, Arc<Before>)>,
    after: Vec<(u64, Arc<After>)>,
}

impl Hooks {
    /// Calls `hook(module, inputs)` before `forward`. An error ends the call. What is borrowed
    /// cannot be replaced: to change the input, wrap the module.
    pub fn before(
        &self,
        hook: impl Fn(&dyn Module, &[Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> ModuleHook {
        self.add(|lists, id| lists.before.push((id, Arc::new(hook))))
    }

    /// Calls `hook(module, inputs, results)` after `forward`; tensors that it gives take the
    /// results' places.
    pub fn after(
        &self,
        hook: impl Fn(&dyn Module, &[Tensor], &[Tensor]) -> Result<Option<Vec<Tensor>>>
        + Send
        + Sync
        + 'static,
    ) -> ModuleHook {
        self.add(|lists, id| lists.after.push((id, Arc::new(hook))))
    }

    fn add(&self, push: impl FnOnce(&mut Lists, u64)) -> ModuleHook {
        let mut lists = self.lists.lock();
        lists.made += 1;
        let id = lists.made;
        push(&mut lists, id);
        self.any.store(true, Ordering::Release);
        ModuleHook { id, any: self.any.clone(), lists: Arc::downgrade(&self.lists) }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Runs the hooks before a call; gives the input's tensors, if a hook afterwards wants them.
    pub(crate) fn run_before(
        &self,
        module: &dyn Module,
        input: &impl Values,
    ) -> Result<Vec<Tensor>> {
        let (before, none_after) = {
            let lists = self.lists.lock();
            (lists.before.clone(), lists.after.is_empty())
        };
        if before.is_empty() && none_after {
            return Ok(Vec::new());
        }
        let inputs = tensors(input);
        before.iter().try_for_each(|(_, hook)| hook(module, &inputs))?;
        // Nobody looks at them again, so that nothing lives longer for it.
        Ok(if none_after { Vec::new() } else { inputs })
    }

    pub(crate) fn run_after(
        &self,
        module: &dyn Module,
        inputs: &[Tensor],
        output: &mut impl Values,
    ) -> Result<()> {
        let after = self.lists.lock().after.clone();
        for (_, hook) in after {
            let results = tensors(output);
            let Some(others) = hook(module, inputs, &results)? else { continue };
            if others.len() != results.len() {
                return Err(Error::invalid_argument(format!(
                    "a hook of {} gave {} tensors for {} results; give one for each, or None",
                    module.type_name(),
                    others.len(),
                    results.len()
                )));
            }
            output.replace_tensors(&mut others.into_iter());
        }
        Ok(())
    }
}

/// Hooks belong to one module: a copy of it starts without.
impl Clone for Hooks {
    fn clone(&self) -> Hooks {
        Hooks::default()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = self.lists.lock();
        write!(f, "Hooks({} before, {} after)", lists.before.len(), lists.after.len())
    }
}

/// Takes its hook away again. Dropping it leaves the hook in place.
pub struct ModuleHook {
    id: u64,
    any: Arc<AtomicBool>,
    lists: Weak<Mutex<Lists>>,
}

impl ModuleHook {
    /// Removes the hook.
    pub fn remove(self) {
        let Some(lists) = self.lists.upgrade() else { return };
        let mut guard = lists.lock();
        // What is found is dropped after the lock: a hook may hold anything.
        let is_other = |id: &u64| *id != self.id;
        let before = guard.before.extract_if(.., |(id, _)| !is_other(id)).next();
        let after = guard.after.extract_if(.., |(id, _)| !is_other(id)).next();
        self.any.store(!(guard.before.is_empty() && guard.after.is_empty()), Ordering::Release);
        drop(guard);
        drop((before, after));
    }
}

impl fmt::Debug for ModuleHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModuleHook({})", self.id)
    }
}
