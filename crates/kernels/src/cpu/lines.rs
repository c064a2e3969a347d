//! Tensors as bundles of lines: every line along one dimension, for operands of one shape. What softmax and
//! sorting iterate over. And moving short runs of floats between memory and arrays of what they are
//! computed in.

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use super::real::Float;
use crate::operand::{CpuLaunch, Operand};

/// Elements handled at a time: a few vectors of every level.
pub(super) const RUN: usize = 32;

/// The lines of `N` operands of one shape along a dimension. Strides in bytes.
#[derive(Clone, Debug)]
pub(super) struct Lines<const N: usize> {
    starts: [*mut u8; N],
    /// The other dimensions, outermost first in operand 0's memory, merged.
    outer: SmallVec<[(usize, [usize; N]); 6]>,
    /// Elements of a line.
    pub(super) len: usize,
    /// From one element of a line to the next.
    pub(super) strides: [usize; N],
    /// Lines.
    pub(super) count: usize,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl<const N: usize> Send for Lines<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Lines<N> {}

impl<const N: usize> Lines<N> {
    /// Lines along `dim`; a zero-dimensional operand is one line of one element.
    pub(super) fn new(
        launch: &CpuLaunch<'_>,
        operands: &[Operand<'_>; N],
        dim: usize,
    ) -> Result<Lines<N>> {
        let shape = operands[0].shape();
        if operands.iter().any(|operand| operand.shape() != shape) || dim >= shape.len().max(1) {
            let shapes: Vec<_> = operands.iter().map(|operand| operand.shape()).collect();
            return Err(Error::shape(
                launch.operation,
                format!(
                    "the kernel needs operands of one shape with a dimension {dim}, got {shapes:?}"
                ),
            ));
        }
        let stride = |i: usize, d: usize| {
            operands[i].layout().strides()[d] * operands[i].dtype().size_bytes()
        };
        let mut dims: SmallVec<[(usize, [usize; N]); 6]> = (0..shape.len())
            .filter(|&d| d != dim && shape[d] != 1)
            .map(|d| (shape[d], std::array::from_fn(|i| stride(i, d))))
            .collect();
        dims.sort_by_key(|&(_, strides)| std::cmp::Reverse(strides[0]));
        let mut outer: SmallVec<[(usize, [usize; N]); 6]> = SmallVec::new();
        for (size, strides) in dims {
            match outer.last_mut() {
                Some((last, above)) if (0..N).all(|i| above[i] == strides[i] * size) => {
                    *last *= size;
                    *above = strides;
                }
                _ => outer.push((size, strides)),
            }
        }
        let len = shape.get(dim).copied().unwrap_or(1);
        let strides = std::array::from_fn(|i| if shape.is_empty() { 0 } else { stride(i, dim) });
        let count = shape.iter().enumerate().filter(|&(d, _)| d != dim).map(|(_, &s)| s).product();
        let starts = std::array::from_fn(|i| operands[i].first_byte());
        Ok(Lines { starts, outer, len, strides, count })
    }

    /// Where line `index` starts in each operand.
    #[inline]
    pub(super) fn line(&self, index: usize) -> [*mut u8; N] {
        self.at(&self.outer, index, 0)
    }

    fn at(&self, dims: &[(usize, [usize; N])], mut index: usize, across: usize) -> [*mut u8; N] {
        let mut offsets = [0; N];
        if let (true, Some((_, strides))) = (across > 0, self.outer.last()) {
            offsets = strides.map(|stride| across * stride);
        }
        for (size, strides) in dims.iter().rev() {
            let at = index % size;
            index /= size;
            for (offset, stride) in offsets.iter_mut().zip(strides) {
                *offset += at * stride;
            }
        }
        std::array::from_fn(|i| self.starts[i].wrapping_add(offsets[i]))
    }

    /// Lines that lie side by side: how many make a group, and the strides from one to the next.
    pub(super) fn across(&self) -> (usize, [usize; N]) {
        self.outer.last().copied().unwrap_or((1, [0; N]))
    }

    /// Where line `first` of group `group` starts in each operand.
    pub(super) fn group(&self, group: usize, first: usize) -> [*mut u8; N] {
        let dims = &self.outer[..self.outer.len().saturating_sub(1)];
        self.at(dims, group, first)
    }
}

/// Reads `values.len()` floats at `stride` bytes from `from`, widened.
///
/// # Safety
/// They must be readable.
#[inline(always)]
pub(super) unsafe fn read_run<T: Float>(from: *const T, stride: usize, values: &mut [T::Wide]) {
    // SAFETY: every index is below `values.len()`; the caller vouches for those elements.
    unsafe {
        if stride == size_of::<T>() {
            for (i, value) in values.iter_mut().enumerate() {
                *value = (*from.add(i)).widen();
            }
        } else {
            for (i, value) in values.iter_mut().enumerate() {
                *value = (*from.byte_add(i * stride)).widen();
            }
        }
    }
}

/// Writes floats at `stride` bytes from `to`, narrowed.
///
/// # Safety
/// They must be writable.
#[inline(always)]
pub(super) unsafe fn write_run<T: Float>(to: *mut T, stride: usize, values: &[T::Wide]) {
    // SAFETY: every index is below `values.len()`; the caller vouches for those elements.
    unsafe {
        if stride == size_of::<T>() {
            for (i, &value) in values.iter().enumerate() {
                *to.add(i) = T::narrow(value);
            }
        } else {
            for (i, &value) in values.iter().enumerate() {
                *to.byte_add(i * stride) = T::narrow(value);
            }
        }
    }
}

/// Adds up an array of lanes pairwise.
#[inline(always)]
pub(super) fn add_lanes<R: super::real::Real, const N: usize>(mut lanes: [R; N]) -> R {
    let mut width = N / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = lanes[j] + lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}
