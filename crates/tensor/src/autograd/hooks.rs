//! Hooks: functions that see a tensor's gradient and may replace it. A leaf keeps its own; those of other tensors lie on
//! the node that made the tensor, with the output they belong to. They run outside every claim and lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use plimsoll_core::{Error, Result};

use super::node::Edge;
use crate::lock::Mutex;
use crate::{Tensor, WeakTensor};

type Function = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// Hooks in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Vec<(u64, Arc<Function>)>);

impl Hooks {
    /// Runs them on `grad`, each seeing what the one before made of it.
    fn run(&self, mut grad: Tensor) -> Result<Tensor> {
        for (_, hook) in &self.0 {
            if let Some(replacement) = hook(&grad)? {
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
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let hook = (id, Arc::new(hook) as Arc<Function>);
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
}
