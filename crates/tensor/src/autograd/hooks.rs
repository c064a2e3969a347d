//! Hooks: functions that see a tensor's gradient and may replace it. A leaf keeps its own; those of other tensors lie on
//! the node that made the tensor, with the output they belong to. They run outside every claim and lock.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use plimsoll_core::{Error, Result};

use super::node::Edge;
use crate::{Tensor, WeakTensor};

/// A function that sees a gradient and may replace it. Closures are hooks.
pub trait Hook: Send + Sync {
    /// Sees a gradient; what it returns takes the gradient's place.
    fn run(&self, grad: &Tensor) -> Result<Option<Tensor>>;

    /// What the hook owns in another language, for that language's garbage collector; see [`Tensor::each_foreign_hook`].
    fn foreign(&self) -> Option<&dyn Any> {
        None
    }
}

impl<F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync> Hook for F {
    fn run(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        self(grad)
    }
}

/// Hooks in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Vec<(u64, Arc<dyn Hook>)>);

impl Hooks {
    /// Runs them on `grad`, each seeing what the one before made of it.
    fn run(&self, mut grad: Tensor) -> Result<Tensor> {
        for (_, hook) in &self.0 {
            if let Some(replacement) = hook.run(&grad)? {
                if replacement.shape() != grad.shape() || replacement.device() != grad.device() {
                    return Err(Error::autograd(
                        "hook",
                        format!(
                            "a hook replaced a gradient of shape {:?} on {} by one of shape {:?} on {}",
                            grad.shape(),
                            grad.device(),
                            replacement.shape(),
                            replacement.device()
                        ),
                    ));
                }
                grad = replacement;
            }
        }
        Ok(grad)
    }

    fn each_foreign(&self, look: &mut dyn FnMut(&dyn Any)) {
        self.0.iter().filter_map(|(_, hook)| hook.foreign()).for_each(look);
    }
}

/// Hooks of the tensors that a node made.
#[derive(Default)]
pub(crate) struct NodeHooks(Mutex<Vec<OutputHooks>>);

struct OutputHooks {
    output: u32,
    hooks: Hooks,
    retained: Option<WeakTensor>,
}

impl NodeHooks {
    fn with<R>(&self, output: u32, change: impl FnOnce(&mut OutputHooks) -> R) -> R {
        let mut all = self.0.lock();
        let index = all.iter().position(|hooks| hooks.output == output).unwrap_or_else(|| {
            all.push(OutputHooks { output, hooks: Hooks::default(), retained: None });
            all.len() - 1
        });
        change(&mut all[index])
    }

    /// Backward will leave the gradient of `output` on `tensor` too.
    pub(super) fn retain(&self, output: u32, tensor: WeakTensor) {
        self.with(output, |hooks| hooks.retained = Some(tensor));
    }

    /// Runs the hooks of `output` on its gradient.
    pub(super) fn run(&self, output: u32, grad: Tensor) -> Result<Tensor> {
        let found = {
            let all = self.0.lock();
            all.iter()
                .find(|hooks| hooks.output == output)
                .map(|hooks| (hooks.hooks.clone(), hooks.retained.clone()))
        };
        let Some((hooks, retained)) = found else { return Ok(grad) };
        let grad = hooks.run(grad)?;
        if let Some(tensor) = retained.and_then(|weak| weak.upgrade()) {
            super::accumulate::into(&tensor, grad.clone())?;
        }
        Ok(grad)
    }
}

/// Runs the hooks of a leaf on its gradient.
pub(super) fn run_on_leaf(leaf: &Tensor, grad: Tensor) -> Result<Tensor> {
    match leaf.slot().read(|state| state.hooks.clone()) {
        Some(hooks) => hooks.run(grad),
        None => Ok(grad),
    }
}

/// Takes its hook away again. Dropping it leaves the hook in place.
#[derive(Debug)]
pub struct HookHandle {
    id: u64,
    target: Target,
}

enum Target {
    Leaf(WeakTensor),
    Node(Weak<super::node::Node>, u32),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Target::Leaf(_) => "leaf",
            Target::Node(..) => "node",
        })
    }
}

impl HookHandle {
    /// Removes the hook.
    pub fn remove(self) {
        let id = self.id;
        match self.target {
            Target::Leaf(weak) => {
                if let Some(tensor) = weak.upgrade() {
                    tensor.slot().with(|state| state.hooks.0.retain(|hook| hook.0 != id));
                }
            }
            Target::Node(weak, output) => {
                if let Some(node) = weak.upgrade() {
                    node.hooks.with(output, |hooks| hooks.hooks.0.retain(|hook| hook.0 != id));
                }
            }
        }
    }
}

impl Tensor {
    /// Calls `hook` with this tensor's gradient whenever backward computes it; a returned tensor replaces it.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook(|grad| grad.mul(10.0).map(Some))?;
    /// x.mul(2.0)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [20.0, 20.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.register_hook_object(Arc::new(hook))
    }

    /// [`Tensor::register_hook`] for a hook that is more than a closure; see [`Tensor::each_foreign_hook`] for one.
    pub fn register_hook_object(&self, hook: Arc<dyn Hook>) -> Result<HookHandle> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let hook = (id, hook);
        let target = match self.edge() {
            None => {
                return Err(Error::autograd(
                    "register_hook",
                    "this tensor does not require gradients, so its hook would never run",
                ));
            }
            Some(Edge::Leaf(_)) => {
                self.slot().with(|state| state.hooks.0.push(hook));
                Target::Leaf(self.downgrade())
            }
            Some(Edge::Node(node, output)) => {
                node.hooks.with(output, |hooks| hooks.hooks.0.push(hook));
                Target::Node(Arc::downgrade(&node), output)
            }
        };
        Ok(HookHandle { id, target })
    }
    /// Shows `look` what the hooks on this tensor's gradient own in another language ([`Hook::foreign`]), as far as this tensor alone
    /// keeps these hooks. It waits for nobody, so that a garbage collector can call it: while another thread changes the hooks, it
    /// shows none.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Hook, Result, Tensor};
    /// struct Named(&'static str);
    /// impl Hook for Named {
    ///     fn run(&self, _: &Tensor) -> Result<Option<Tensor>> { Ok(None) }
    ///     fn foreign(&self) -> Option<&dyn std::any::Any> { Some(&self.0) }
    /// }
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook_object(std::sync::Arc::new(Named("a")))?;
    /// let mut seen = Vec::new();
    /// x.each_foreign_hook(&mut |it| seen.extend(it.downcast_ref::<&str>().copied()));
    /// assert_eq!(seen, ["a"]);
    /// x.remove_hooks();
    /// x.each_foreign_hook(&mut |_| unreachable!());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn each_foreign_hook(&self, look: &mut dyn FnMut(&dyn Any)) {
        self.slot().try_read(|state| {
            state.hooks.each_foreign(look);
            // A node that other tensors or a larger graph hold keeps its hooks without this tensor.
            if let Some((node, _)) = &state.node
                && Arc::strong_count(node) == 1
                && let Some(outputs) = node.hooks.0.try_lock()
            {
                outputs.iter().for_each(|output| output.hooks.each_foreign(look));
            }
        });
    }

    /// Removes the hooks that [`Tensor::each_foreign_hook`] looks at.
    pub fn remove_hooks(&self) {
        // They are dropped after the locks: a hook may own anything.
        let removed = self.slot().with(|state| {
            let mut removed = vec![std::mem::take(&mut state.hooks)];
            if let Some((node, _)) = &state.node
                && Arc::strong_count(node) == 1
            {
                let mut outputs = node.hooks.0.lock();
                removed.extend(outputs.iter_mut().map(|output| std::mem::take(&mut output.hooks)));
            }
            removed
        });
        drop(removed);
    }
}
