//! Layouts as kernels take them: dimensions that lie together merged, the innermost first, strides
//! for up to four operands.

use plimsoll_core::{Dims, Error, Result};
use plimsoll_cuda::{Argument, Words};
use plimsoll_kernels::Operand;
use smallvec::{SmallVec, smallvec};

/// The most dimensions that kernels take after merging.
const RANK: usize = 8;

/// Mirrors `Strided` in `prelude.cuh`.
#[derive(Debug)]
pub(super) struct Strided {
    sizes: Dims,
    /// One list for each operand.
    strides: SmallVec<[Dims; 4]>,
}

impl Strided {
    /// The operands, all of them broadcast to the first one's shape.
    pub(super) fn broadcast(operands: &[&Operand<'_>]) -> Result<Strided> {
        let shape = operands[0].shape();
        let mut strides = SmallVec::new();
        for operand in operands {
            strides.push(Dims::from(operand.layout().broadcast_to(shape)?.strides()));
        }
        Ok(Strided::merged(shape, strides))
    }

    /// Dimensions in the order given, the last one innermost: for each its size and the operands'
    /// strides. The order of elements matters to the caller, so they are merged but not sorted.
    pub(super) fn in_order<const OPERANDS: usize>(
        dims: impl DoubleEndedIterator<Item = (usize, [usize; OPERANDS])>,
    ) -> Strided {
        let strides = (0..OPERANDS).map(|_| Dims::new()).collect();
        let mut kept = Strided { sizes: Dims::new(), strides };
        for (size, strides) in dims.rev() {
            kept.push(size, &strides);
        }
        kept
    }

    fn merged(shape: &[usize], strides: SmallVec<[Dims; 4]>) -> Strided {
        let mut order: Dims = (0..shape.len()).collect();
        // Innermost first by the output's strides, so that neighbouring threads write neighbouring
        // elements.
        order.sort_by_key(|&dim| (strides[0][dim], std::cmp::Reverse(dim)));
        let mut kept =
            Strided { sizes: Dims::new(), strides: strides.iter().map(|_| Dims::new()).collect() };
        for dim in order {
            let own: Dims = strides.iter().map(|operand| operand[dim]).collect();
            kept.push(shape[dim], &own);
        }
        kept
    }

    /// Adds the next outer dimension, merging it where every operand continues the last one.
    fn push(&mut self, size: usize, strides: &[usize]) {
        if size == 1 {
            return;
        }
        let continues = |last: usize| {
            let inner = self.sizes[last];
            self.strides.iter().zip(strides).all(|(own, &stride)| own[last] * inner == stride)
        };
        match self.sizes.len().checked_sub(1) {
            Some(last) if continues(last) => self.sizes[last] *= size,
            _ => {
                self.sizes.push(size);
                for (own, &stride) in self.strides.iter_mut().zip(strides) {
                    own.push(stride);
                }
            }
        }
    }

    /// Whether every operand is one run of consecutive elements.
    pub(super) fn is_dense(&self) -> bool {
        match self.sizes.len() {
            0 => true,
            1 => self.strides.iter().all(|own| own[0] == 1),
            _ => false,
        }
    }

    /// Whether every operand is made of runs of consecutive elements, each of whole packs of
    /// `count` and with whole packs from one to the next.
    pub(super) fn has_runs_of(&self, count: usize) -> bool {
        let [run, ..] = self.sizes[..] else { return false };
        let whole = |strides: &Dims| {
            strides[0] == 1 && strides[1..].iter().all(|step| step.is_multiple_of(count))
        };
        run.is_multiple_of(count) && self.strides.iter().all(whole)
    }

    /// The sizes after merging, innermost first.
    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The strides of one operand after merging.
    pub(super) fn strides(&self, operand: usize) -> &[usize] {
        &self.strides[operand]
    }

    /// The structure that kernels take by value.
    pub(super) fn argument(&self, operation: &'static str) -> Result<Argument> {
        if self.sizes.len() > RANK {
            return Err(Error::unsupported(
                operation,
                format!(
                    "CUDA kernels take {RANK} dimensions that cannot be merged, and these operands have {}; call \
                     `contiguous` on them first",
                    self.sizes.len()
                ),
            ));
        }
        let mut words: Words = smallvec![0u64; 1 + RANK + 4 * RANK];
        words[0] = self.sizes.len() as u64;
        for (dim, &size) in self.sizes.iter().enumerate() {
            words[1 + dim] = size as u64;
        }
        for (operand, strides) in self.strides.iter().enumerate() {
            for (dim, &stride) in strides.iter().enumerate() {
                words[1 + RANK + operand * RANK + dim] = stride as u64;
            }
        }
        Ok(Argument::Words(words))
    }
}
