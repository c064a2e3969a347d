//! Writing gradients: a leaf's end of the graph, and the rules for taking a gradient's memory over
//! or adding to it.

use plimsoll_core::Result;

use super::hooks::Hooks;
use super::is_grad_enabled;
use crate::device::Entry;
use crate::lock::{Mutex, ReentrantLock};
use crate::{Tensor, WeakTensor};
use plimsoll_kernels::Meta;

/// Where a leaf's gradients arrive. The graph keeps it, and with it the leaf's hooks, but not the
/// leaf: see [`super::node::Edge`].
pub(crate) struct Accumulator {
    /// Changes when the leaf gets other memory; see `inherit.rs`.
    leaf: Mutex<WeakTensor>,
    pub(super) hooks: Hooks,
    /// Held while a gradient is added: two threads' first ones must not both find none. It is
    /// reentrant because an allocation can call back into the program.
    adding: ReentrantLock,
}

impl Accumulator {
    pub(super) fn new(leaf: &Tensor) -> Accumulator {
        Accumulator {
            leaf: Mutex::new(leaf.downgrade()),
            hooks: Hooks::default(),
            adding: ReentrantLock::new(),
        }
    }

    /// The leaf, if someone still holds it.
    pub(super) fn leaf(&self) -> Option<Tensor> {
        self.leaf.lock().upgrade()
    }

    /// Gradients arrive at `leaf` from now on.
    pub(super) fn redirect(&self, leaf: &Tensor) {
        *self.leaf.lock() = leaf.downgrade();
    }

    /// Adds `grad` to the gradient of `leaf`, which is this one's.
    pub(super) fn add(&self, leaf: &Tensor, grad: Tensor) -> Result<()> {
        let _adding = self.adding.lock();
        let grad = in_dtype_of(leaf, grad)?;
        let total = match leaf.grad() {
            None => first(leaf, grad)?,
            // While recording, the old gradient may be part of a graph, or held by somebody who
            // relies on its value.
            Some(old) if is_grad_enabled() => old.add(&grad)?,
            Some(old) => {
                old.add_(&grad)?;
                return Ok(());
            }
        };
        store(leaf, &total)
    }
}

/// `grad` in the dtype that the tensor has by now: it may have been cast since forward.
fn in_dtype_of(tensor: &Tensor, grad: Tensor) -> Result<Tensor> {
    if grad.dtype() == tensor.dtype() { Ok(grad) } else { grad.to(tensor.dtype()) }
}

/// Leaves `grad` on a tensor. Its shape is that of what backward went through, whatever memory the
/// tensor got since.
fn store(tensor: &Tensor, grad: &Tensor) -> Result<()> {
    if grad.shape() == tensor.shape() {
        return tensor.set_grad(Some(grad));
    }
    tensor.put_grad(Some(grad));
    Ok(())
}

/// The first gradient: this very memory if it is free to take and lies like the leaf, else a copy.
/// While recording it is always a copy, since other leaves may be handed the same tensor.
fn first(leaf: &Tensor, grad: Tensor) -> Result<Tensor> {
    // A view that nobody has the base of, such as a product turned round, is as free as its base.
    let plain = grad.view_of().is_some() && !is_grad_enabled() && !grad.requires_grad();
    let grad = if plain {
        let alone = grad.detach();
        drop(grad);
        alone
    } else {
        grad
    };
    let whole = grad.storage_nbytes() == grad.nbytes();
    let free = whole && grad.is_sole_owner() && !grad.requires_grad();
    if free && !is_grad_enabled() && grad.strides() == leaf.strides() {
        return Ok(grad);
    }
    // A leaf may have got memory of another shape since.
    let grad = if grad.shape() == leaf.shape() { grad } else { grad.expand_as(leaf)? };
    grad.clone_as(leaf.meta())
}

/// Leaves `grad` on a tensor that retains its gradient, and is no leaf.
pub(super) fn retain(tensor: &Tensor, grad: &Tensor) -> Result<()> {
    let grad = in_dtype_of(tensor, grad.clone())?;
    let total = match tensor.grad() {
        None if grad.shape() == tensor.shape() => grad.clone_as(tensor.meta())?,
        // The tensor got memory of another shape since.
        None => grad.clone_tensor()?,
        Some(old) => old.add(&grad)?,
    };
    store(tensor, &total)
}

/// Whether a gradient may be written: nobody else holds it, and each element is there once.
pub(super) fn is_free(gradient: &Tensor) -> bool {
    gradient.is_sole_owner() && !gradient.layout().may_overlap_itself()
}

/// Whether a kernel may add a gradient of `input` to this one: it may be written, and is contiguous
/// and of the same sort.
pub(super) fn is_free_for(gradient: &Tensor, input: &Meta, entry: &'static Entry) -> bool {
    is_free(gradient)
        && gradient.is_contiguous()
        && gradient.dtype() == input.dtype
        && gradient.shape() == input.shape()
        && std::ptr::eq(gradient.entry(), entry)
}

/// The same of a tensor that is there.
pub(crate) fn is_free_to_take(gradient: &Tensor, like: &Tensor) -> bool {
    is_free_for(gradient, like.meta(), like.entry())
}

/// The sum of two gradients of one tensor, in the memory of one of them if that is free to take.
pub(super) fn sum(a: Tensor, b: Tensor) -> Result<Tensor> {
    let recorded = is_grad_enabled() && (a.requires_grad() || b.requires_grad());
    if !recorded {
        for (target, other) in [(&a, &b), (&b, &a)] {
            if is_free(target) {
                target.add_(other)?;
                return Ok(target.clone());
            }
        }
    }
    a.add(&b)
}
