//! Tensors as bundles of lines along one dimension, as kernels take them: where each line starts,
//! how long it is and how far apart its elements are. The twin of `along_dim.rs` on the CPU.

use std::cmp::Reverse;

use plimsoll_kernels::{Meta, Operand};
use smallvec::SmallVec;

use super::strided::Strided;

/// The lines of `N` operands along a dimension. Operands may differ in their size along it: what
/// counts is the first one's.
pub(super) struct Lines<const N: usize> {
    /// Where each line starts in each operand.
    pub(super) outer: Strided,
    /// How many lines there are.
    pub(super) count: usize,
    /// Elements of a line.
    pub(super) len: usize,
    /// From one element of a line to the next, in elements.
    pub(super) steps: [usize; N],
}

impl<const N: usize> Lines<N> {
    /// Lines along `dim`; a zero-dimensional operand is one line of one element.
    pub(super) fn new(operands: [&Operand<'_>; N], dim: usize) -> Lines<N> {
        Lines::of(operands.map(Operand::meta), dim)
    }

    /// The same of operands that are not there yet.
    pub(super) fn of(metas: [&Meta; N], dim: usize) -> Lines<N> {
        let shape = metas[0].shape();
        let step = |dim: usize| metas.map(|meta| meta.layout.strides()[dim]);
        let others = (0..shape.len()).filter(|&other| other != dim);
        let mut outer: SmallVec<[(usize, [usize; N]); 6]> =
            others.map(|other| (shape[other], step(other))).collect();
        let count = outer.iter().map(|&(size, _)| size).product();
        // Neighbouring lines of the first operand get neighbouring numbers.
        outer.sort_by_key(|&(_, steps)| Reverse(steps[0]));
        Lines {
            outer: Strided::in_order(outer.into_iter()),
            count,
            len: shape.get(dim).copied().unwrap_or(1),
            steps: if dim < shape.len() { step(dim) } else { [1; N] },
        }
    }

    /// Whether lines lie side by side: the next one is nearer than the next element of the same.
    pub(super) fn are_columns(&self) -> bool {
        let across = self.outer.strides(0).first();
        self.len > 1 && across.is_some_and(|&across| across < self.steps[0])
    }
}
