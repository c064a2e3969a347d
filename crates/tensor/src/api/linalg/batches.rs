//! Operands of one batch: their dimensions before the last two broadcast against each other.

use plimsoll_core::{Error, Result, broadcast_shapes};

use crate::Tensor;

/// The operands with all dimensions but the last two brought together, as views.
pub(super) fn together<const N: usize>(
    op: &'static str,
    operands: [&Tensor; N],
) -> Result<[Tensor; N]> {
    if let Some(flat) = operands.iter().find(|operand| operand.rank() < 2) {
        let why =
            format!("matrices are needed, at least two dimensions, not shape {:?}", flat.shape());
        return Err(Error::shape(op, why));
    }
    let leads: Vec<&[usize]> =
        operands.iter().map(|operand| &operand.shape()[..operand.rank() - 2]).collect();
    let lead = broadcast_shapes(op, &leads)?;
    let mut expanded = operands.map(Tensor::clone);
    for operand in &mut expanded {
        let inner = &operand.shape()[operand.rank() - 2..];
        let sizes: Vec<i64> = lead.iter().chain(inner).map(|&size| size as i64).collect();
        if sizes.len() != operand.rank() || lead[..] != operand.shape()[..operand.rank() - 2] {
            *operand = operand.expand(&sizes)?;
        }
    }
    Ok(expanded)
}

/// Sizes as arguments of views.
pub(super) fn signed(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|&size| size as i64).collect()
}
