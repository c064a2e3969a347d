//! An optimizer whose steps are part of backward: each parameter is changed as soon as its gradient
//! is complete, and the gradient freed, so that the gradients of a model never live together.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use parking_lot::Mutex;
use plimsoll_tensor::{Error, HookHandle, Result};

use super::fused::Fused;
use super::rule::FusedRule;

/// An optimizer that steps inside backward; see [`Fused::in_backward`]. Dropping it takes its
/// hooks away.
pub struct InBackward<O> {
    inner: Arc<Inner<O>>,
    hooks: Vec<HookHandle>,
}

struct Inner<O> {
    optimizer: Mutex<Fused<O>>,
    /// The thread that looks at the optimizer, which must not run backward meanwhile.
    looks: Mutex<Option<ThreadId>>,
}

impl<O: FusedRule> Fused<O> {
    /// Has every parameter's step happen inside backward, right after its gradient is complete,
    /// which is freed at once. Each backward is a step then: gradients do not add up over several,
    /// and nothing that needs all of them (clipping by their norm, a scaler) can come between.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, Linear, Module, optim};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = Linear::new(2, 1)?;
    /// let options = optim::SGDOptions::new().lr(0.5);
    /// let training = optim::SGD::new(layer.parameters(), options)?.in_backward()?;
    /// let before = layer.weight.tensor().detach().clone_tensor()?;
    /// layer.call(&Tensor::ones(&[1, 2], DType::F32)?)?.sum()?.backward()?;
    /// assert!(layer.weight.tensor().grad().is_none());
    /// assert!(layer.weight.tensor().allclose(&before.sub(0.5)?)?);
    /// training.with(|optimizer| optimizer.groups_mut()[0].options.lr = 0.1);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn in_backward(self) -> Result<InBackward<O>> {
        let places: Vec<(usize, usize, plimsoll_tensor::Tensor)> = self
            .groups()
            .iter()
            .enumerate()
            .flat_map(|(group, own)| {
                let tensors = own.parameters().enumerate();
                tensors.map(move |(at, parameter)| (group, at, parameter.tensor()))
            })
            .filter(|(_, _, tensor)| tensor.requires_grad())
            .collect();
        let inner = Arc::new(Inner { optimizer: Mutex::new(self), looks: Mutex::new(None) });
        let mut training = InBackward { inner, hooks: Vec::new() };
        for (group, at, tensor) in places {
            let inner = training.inner.clone();
            let hook = tensor.register_post_accumulate_grad_hook(move |leaf| {
                inner.check_unused()?;
                inner.optimizer.lock().step_one(group, at)?;
                leaf.set_grad(None)
            })?;
            training.hooks.push(hook);
        }
        Ok(training)
    }
}

impl<O> Inner<O> {
    fn check_unused(&self) -> Result<()> {
        if *self.looks.lock() != Some(thread::current().id()) {
            return Ok(());
        }
        Err(Error::autograd(
            "in_backward",
            "backward ran inside `with`, which holds the optimizer; run backward outside of it",
        ))
    }
}

impl<O: FusedRule> InBackward<O> {
    /// Looks at the optimizer between steps: for a scheduler's step, or its state. Backward must
    /// not run inside.
    pub fn with<R>(&self, look: impl FnOnce(&mut Fused<O>) -> R) -> R {
        let mut optimizer = self.inner.optimizer.lock();
        *self.inner.looks.lock() = Some(thread::current().id());
        let looks = Looks(&self.inner.looks);
        let result = look(&mut optimizer);
        drop(looks);
        result
    }
}

/// Ends a look, also one that panics.
struct Looks<'a>(&'a Mutex<Option<ThreadId>>);

impl Drop for Looks<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl<O> Drop for InBackward<O> {
    fn drop(&mut self) {
        self.hooks.drain(..).for_each(HookHandle::remove);
    }
}

impl<O: FusedRule> fmt::Debug for InBackward<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InBackward({} of {} parameters)", O::NAME, self.hooks.len())
    }
}
