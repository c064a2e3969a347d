//! A tensor object that takes another's place in autograd, because its memory was replaced
//! (`api/data.rs`): gradient, node, hooks and accumulator go over, and graphs that lead to the old
//! one lead to the new one.

use crate::Tensor;
use crate::storage::roles::Role;

/// Gives `heir` everything that autograd knows of `from`, which is outside every graph afterwards.
pub(crate) fn inherit(heir: &Tensor, from: &Tensor) {
    // A view's own node may be out of date with its base; the heir is no view, and has only the
    // node.
    let _ = from.edge();
    let Some(state) = from.slot().take() else { return };
    if let Some(accumulator) = &state.accumulator {
        accumulator.redirect(heir);
    }
    if let Some((node, output)) = &state.node
        && node.hooks.stop_retaining(*output).is_some()
    {
        node.hooks.retain(*output, heir.downgrade());
    }
    if state.requires_grad {
        from.storage().leave_role(Role::Leaf);
        heir.storage().take_role(Role::Leaf);
    }
    heir.slot().with(|empty| *empty = *state);
}
