//! Operands of one batch: their dimensions before the last two broadcast against each other.

use plimsoll_core::{Error, Result, broadcast_shapes};

use crate::Tensor;
use crate::ops::linalg::matrices::shape_of;
use crate::ops::linalg::signed;

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
        let sizes = signed(&shape_of(&lead, inner));
        if sizes.len() != operand.rank() || lead[..] != operand.shape()[..operand.rank() - 2] {
            *operand = operand.expand(&sizes)?;
        }
    }
    Ok(expanded)
}
