//! Writing gradients: the first one is taken over if nobody else holds it, later ones are added in place.

use plimsoll_core::Result;

use super::is_grad_enabled;
use crate::Tensor;
use crate::storage::roles::Role;

/// Adds `grad` to the gradient of `leaf`.
pub(super) fn into(leaf: &Tensor, grad: Tensor) -> Result<()> {
    let total = match leaf.grad() {
        None => first(leaf, grad)?,
        // A recorded sum must not overwrite its own operand; see double backward.
        Some(old) if is_grad_enabled() && (old.requires_grad() || grad.requires_grad()) => {
            old.add(&grad)?
        }
        Some(old) => {
            old.detach().add_(&grad)?;
            return Ok(());
        }
    };
    total.storage().take_role(Role::Gradient);
    leaf.set_grad(Some(&total))
}

/// The first gradient: this very memory if it is free to take and lies like the leaf, else a copy.
fn first(leaf: &Tensor, grad: Tensor) -> Result<Tensor> {
    let whole = grad.storage_nbytes() == grad.nbytes();
    if grad.requires_grad() || (whole && grad.is_sole_owner() && grad.strides() == leaf.strides()) {
        return Ok(grad);
    }
    grad.clone_as(leaf.meta())
}

/// The sum of two gradients of one tensor, in the memory of one of them if that is free to take.
pub(super) fn sum(a: Tensor, b: Tensor) -> Result<Tensor> {
    let recorded = is_grad_enabled() && (a.requires_grad() || b.requires_grad());
    if !recorded {
        for (target, other) in [(&a, &b), (&b, &a)] {
            if target.is_sole_owner() && !target.layout().may_overlap_itself() {
                target.add_(other)?;
                return Ok(target.clone());
            }
        }
    }
    a.add(&b)
}
