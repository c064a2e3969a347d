//! Hooks on the gradients of several tensors: one call in each backward, when all that will come
//! have come, or at the first. How a hook sits on one tensor is `hooks.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::Result;

use super::hooks::{Hook, HookHandle};
use super::runs;
use super::tasks::Target;
use crate::Tensor;
use crate::lock::Mutex;

/// Takes the gradients of several tensors.
pub type AllGrads = dyn Fn(&[Option<Tensor>]) -> Result<()> + Send + Sync;

/// Takes one gradient.
pub type FirstGrad = dyn Fn(&Tensor) -> Result<()> + Send + Sync;

/// A function of the gradients of several tensors.
pub enum MultiGradHook {
    /// Called when every gradient that this backward computes is there, with `None` for those that
    /// it does not.
    All(Box<AllGrads>),
    /// Called with the first gradient that is there.
    Any(Box<FirstGrad>),
}

impl std::fmt::Debug for MultiGradHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MultiGradHook::All(_) => "MultiGradHook::All",
            MultiGradHook::Any(_) => "MultiGradHook::Any",
        })
    }
}

/// Takes a hook of several tensors away again. Dropping it leaves the hook in place.
#[derive(Debug)]
pub struct MultiGradHandle(Vec<HookHandle>);

impl MultiGradHandle {
    /// Removes the hook.
    pub fn remove(self) {
        self.0.into_iter().for_each(HookHandle::remove);
    }
}

/// Calls `hook` once in each backward with the gradients of `tensors`, or with the first of them.
/// Gradients are those that the tensors' own hooks see, and it changes none.
///
/// ```
/// use plimsoll_tensor::{DType, MultiGradHook, Tensor, register_multi_grad_hook};
/// let a = Tensor::full(&[1], 2.0, DType::F32)?.requires_grad_(true)?;
/// let b = Tensor::full(&[1], 3.0, DType::F32)?.requires_grad_(true)?;
/// let hook = MultiGradHook::All(Box::new(|grads| {
///     let values: Vec<f32> = grads.iter().flatten().map(|g| g.item().unwrap()).collect();
///     assert_eq!(values, [3.0, 2.0]);
///     Ok(())
/// }));
/// register_multi_grad_hook(&[&a, &b], hook)?;
/// a.mul(&b)?.backward()?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn register_multi_grad_hook(
    tensors: &[&Tensor],
    hook: MultiGradHook,
) -> Result<MultiGradHandle> {
    let first_only = matches!(hook, MultiGradHook::Any(_));
    let targets = tensors.iter().map(|tensor| tensor.edge().map(|edge| edge.target())).collect();
    let shared = Arc::new(Shared { hook, targets, open: Mutex::default() });
    let mut handles = Vec::new();
    for (place, tensor) in tensors.iter().enumerate() {
        // The first gradient cannot be that of a tensor that has none.
        if !first_only || tensor.requires_grad() {
            let part = Part { shared: shared.clone(), place };
            handles.push(tensor.register_hook_object(Arc::new(part))?);
        }
    }
    Ok(MultiGradHandle(handles))
}

struct Shared {
    hook: MultiGradHook,
    targets: Vec<Option<Target>>,
    /// What has come so far, for each backward that is going on.
    open: Mutex<HashMap<u64, Arrived>>,
}

struct Arrived {
    grads: Vec<Option<Tensor>>,
    missing: usize,
}

/// The hook on one of the tensors.
struct Part {
    shared: Arc<Shared>,
    place: usize,
}

impl Part {
    fn arrive(&self, grad: Option<&Tensor>) -> Result<()> {
        let shared = &self.shared;
        let Some(run) = runs::innermost() else { return Ok(()) };
        let mut open = shared.open.lock();
        let first = !open.contains_key(&run);
        let arrived = open.entry(run).or_insert_with(|| Arrived {
            grads: vec![None; shared.targets.len()],
            missing: shared
                .targets
                .iter()
                .flatten()
                .filter(|target| runs::will_run(target))
                .count(),
        });
        arrived.missing = arrived.missing.saturating_sub(1);
        arrived.grads[self.place] = grad.cloned();
        let complete = (arrived.missing == 0).then(|| std::mem::take(&mut arrived.grads));
        drop(open);
        if first {
            let shared = Arc::downgrade(shared);
            runs::at_end_of_innermost(move || {
                let shared = shared.upgrade();
                drop(shared.and_then(|shared| shared.open.lock().remove(&run)));
            });
        }
        match (&shared.hook, complete, grad) {
            (MultiGradHook::All(hook), Some(grads), _) => hook(&grads),
            (MultiGradHook::Any(hook), _, Some(grad)) if first => hook(grad),
            _ => Ok(()),
        }
    }
}

impl Hook for Part {
    fn run(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        self.arrive(Some(grad)).map(|()| None)
    }

    fn pass(&self) -> Result<()> {
        match self.shared.hook {
            MultiGradHook::All(_) => self.arrive(None),
            MultiGradHook::Any(_) => Ok(()),
        }
    }
}
