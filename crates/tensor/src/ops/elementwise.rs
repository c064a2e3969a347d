//! The shape rule that all elementwise operations share: broadcast the operands, and lay the result
//! out like them. And what a host number is beside halves.

use half::{bf16, f16};
use plimsoll_core::{DType, Dims, Layout, Result, Scalar, broadcast_shapes};
use smallvec::SmallVec;

use crate::operation::Inferred;
use plimsoll_kernels::Meta;

/// One result of `dtype` in the operands' common shape.
#[inline]
pub(crate) fn infer(op: &'static str, inputs: &[&Meta], dtype: DType) -> Result<Inferred> {
    Ok(Inferred::one(Meta { layout: output_layout(op, inputs)?, dtype }))
}

/// A host number beside halves, rounded to them first, as PyTorch does: 0.1 equals what it was
/// stored as.
#[inline]
pub(crate) fn rounded(number: Scalar, dtype: DType) -> Scalar {
    match dtype {
        DType::F16 => Scalar::Float(f16::from_f64(number.to_f64()).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_f64(number.to_f64()).to_f64()),
        _ => number,
    }
}

/// The layout of an elementwise result: dense, with its dimensions in the order in which they lie
/// in the operands, so that `x.t() + 1` is written as `x` is read.
///
/// PyTorch's rule: dimensions are sorted by the strides of the first operand that tells two of them
/// apart (a stride of 0 tells nothing), starting from row-major order; equal strides put the larger
/// size further out.
#[inline(always)]
pub(crate) fn output_layout(op: &'static str, inputs: &[&Meta]) -> Result<Layout> {
    // By far the most common: row-major operands of one shape.
    if let Some((first, rest)) = inputs.split_first()
        && first.layout.is_contiguous()
        && rest
            .iter()
            .all(|other| other.layout.is_contiguous() && other.layout.same_shape(&first.layout))
    {
        return Ok(first.layout.made_contiguous());
    }
    broadcast_layout(op, inputs)
}

/// [`output_layout`] for operands that are not all row-major in one shape.
#[inline(never)]
fn broadcast_layout(op: &'static str, inputs: &[&Meta]) -> Result<Layout> {
    if let Some((first, rest)) = inputs.split_first()
        && rest.iter().all(|meta| meta.layout.same_shape(&first.layout))
        && rest.iter().all(|meta| meta.layout.strides() == first.layout.strides())
        && first.layout.is_dense()
    {
        return Ok(first.layout.at_start());
    }
    let shapes: SmallVec<[&[usize]; 4]> = inputs.iter().map(|meta| meta.shape()).collect();
    let shape = broadcast_shapes(op, &shapes)?;
    let strides: SmallVec<[Dims; 4]> =
        inputs.iter().map(|meta| broadcast_strides(&meta.layout, &shape)).collect();
    let order = dimension_order(&shape, &strides);
    let mut dense = Dims::from_elem(1, shape.len());
    let mut step = 1usize;
    for &dim in &order {
        dense[dim] = step;
        step = step.saturating_mul(shape[dim].max(1));
    }
    Layout::strided(&shape, &dense, 0).map_err(|e| e.in_operation(op))
}

/// Strides in the broadcast shape; 0 where the operand is stretched or lacks the dimension.
fn broadcast_strides(layout: &Layout, shape: &[usize]) -> Dims {
    let lead = shape.len() - layout.rank();
    (0..shape.len())
        .map(|dim| match dim.checked_sub(lead) {
            Some(own) if layout.shape()[own] == shape[dim] => layout.strides()[own],
            _ => 0,
        })
        .collect()
}

/// Dimensions from the innermost (smallest stride) to the outermost.
fn dimension_order(shape: &[usize], strides: &[Dims]) -> Dims {
    let mut order: Dims = (0..shape.len()).rev().collect();
    // Whether `outer` must come before `inner`: the first operand that can tell decides.
    let is_inside = |outer: usize, inner: usize| -> Option<bool> {
        for operand in strides {
            let (a, b) = (operand[outer], operand[inner]);
            if a == 0 || b == 0 {
                continue;
            }
            if a != b {
                return Some(a < b);
            }
            if shape[outer] < shape[inner] {
                return Some(true);
            }
        }
        None
    };
    // Insertion sort, because "cannot tell" is not transitive: a dimension moves in only past those
    // it is surely inside of.
    for i in 1..order.len() {
        let mut at = i;
        for other in (0..i).rev() {
            match is_inside(order[at], order[other]) {
                Some(true) => {
                    order.swap(at, other);
                    at = other;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    order
}
