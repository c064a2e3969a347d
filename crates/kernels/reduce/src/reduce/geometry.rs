//! The dimensions of a reduction, sorted into kept and reduced ones and merged where memory allows.

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use plimsoll_engine::{CpuLaunch, Operand};

/// One dimension; strides in bytes. The output's stride is 0 for reduced ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Dim {
    pub(in super::super) size: usize,
    pub(in super::super) from: usize,
    pub(in super::super) to: usize,
}

/// A list of dimensions, outermost first.
pub(in super::super) type DimList = SmallVec<[Dim; 6]>;

/// Where a reduction reads and writes.
#[derive(Clone, Debug)]
pub(in super::super) struct Geometry {
    /// Dimensions of the output.
    pub(in super::super) kept: DimList,
    /// Dimensions that go away.
    pub(in super::super) reduced: DimList,
    /// The input's first element.
    input: *mut u8,
    /// The output's first element.
    output: *mut u8,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl Send for Geometry {}
// SAFETY: as for Send.
unsafe impl Sync for Geometry {}

impl Geometry {
    /// The input's dimensions in logical order, neither sorted nor merged. The output has the kept
    /// dimensions, or all of them with the reduced ones of size 1.
    pub(in super::super) fn logical(
        launch: &CpuLaunch<'_>,
        input: &Operand<'_>,
        output: &Operand<'_>,
        reduced: &[usize],
    ) -> Result<Geometry> {
        let rank = input.shape().len();
        let keepdim = output.shape().len() == rank;
        if !keepdim && output.shape().len() + reduced.len() != rank {
            return Err(Error::shape(
                launch.operation,
                format!(
                    "reducing dimensions {reduced:?} of shape {:?} does not give shape {:?}",
                    input.shape(),
                    output.shape()
                ),
            ));
        }
        let (from_bytes, to_bytes) = (input.dtype().size_bytes(), output.dtype().size_bytes());
        let mut geometry = Geometry {
            kept: DimList::new(),
            reduced: DimList::new(),
            input: input.first_byte(),
            output: output.first_byte(),
        };
        let mut next = 0;
        for d in 0..rank {
            let (size, from) = (input.shape()[d], input.layout().strides()[d] * from_bytes);
            if reduced.contains(&d) {
                geometry.reduced.push(Dim { size, from, to: 0 });
                next += usize::from(keepdim);
            } else {
                let to = output.layout().strides()[next] * to_bytes;
                geometry.kept.push(Dim { size, from, to });
                next += 1;
            }
        }
        Ok(geometry)
    }

    /// Sorted by the input's strides and merged: for folds whose order of elements is free.
    pub(in super::super) fn new(
        launch: &CpuLaunch<'_>,
        input: &Operand<'_>,
        output: &Operand<'_>,
        reduced: &[usize],
    ) -> Result<Geometry> {
        let mut geometry = Geometry::logical(launch, input, output, reduced)?;
        for dims in [&mut geometry.kept, &mut geometry.reduced] {
            dims.sort_by_key(|dim| std::cmp::Reverse(dim.from));
            *dims = merged(dims);
        }
        Ok(geometry)
    }

    /// The input element `offset` bytes from the first.
    #[inline(always)]
    pub(in super::super) fn input_at(&self, offset: usize) -> *const u8 {
        self.input.wrapping_add(offset)
    }

    /// The output element `offset` bytes from the first.
    #[inline(always)]
    pub(in super::super) fn output_at(&self, offset: usize) -> *mut u8 {
        self.output.wrapping_add(offset)
    }

    /// Elements of the output.
    pub(in super::super) fn kept_numel(&self) -> usize {
        self.kept.iter().map(|dim| dim.size).product()
    }

    /// Input elements under each output element.
    pub(in super::super) fn reduced_numel(&self) -> usize {
        self.reduced.iter().map(|dim| dim.size).product()
    }
}

/// `dims` without sizes of 1, neighbours joined where both strides allow it.
pub(in super::super) fn merged(dims: &[Dim]) -> DimList {
    let mut out = DimList::new();
    for &dim in dims.iter().filter(|dim| dim.size != 1) {
        match out.last_mut() {
            Some(last) if last.from == dim.from * dim.size && last.to == dim.to * dim.size => {
                *last = Dim { size: last.size * dim.size, ..dim };
            }
            _ => out.push(dim),
        }
    }
    out
}

/// Byte offsets (input, output) of the `index`-th element of `dims`, the last running fastest.
#[inline]
pub(in super::super) fn offsets(dims: &[Dim], mut index: usize) -> (usize, usize) {
    let (mut from, mut to) = (0, 0);
    for dim in dims.iter().rev() {
        let at = index % dim.size;
        index /= dim.size;
        from += at * dim.from;
        to += at * dim.to;
    }
    (from, to)
}
