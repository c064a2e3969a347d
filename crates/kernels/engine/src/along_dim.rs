//! Tensors as bundles of lines: every line along one dimension, for operands of one shape. What
//! softmax and sorting iterate over. And moving floats between memory and buffers of what they are
//! computed in.

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use crate::nontemporal;
use crate::real::{Float, Real};
use crate::{CpuLaunch, Operand};

/// Elements computed in a buffer at a time: long enough for the compiler's vector loops, short
/// enough for the first-level cache.
pub const SLICE: usize = 4096;

/// Sums and extremes that are folded side by side: several vectors of every level.
pub const LANES: usize = 64;

/// The lines of `N` operands of one shape along a dimension. Strides in bytes.
#[derive(Clone, Debug)]
pub struct Lines<const N: usize> {
    starts: [*mut u8; N],
    /// The other dimensions, outermost first in operand 0's memory, merged.
    outer: SmallVec<[(usize, [usize; N]); 6]>,
    /// Elements of a line.
    pub len: usize,
    /// From one element of a line to the next.
    pub strides: [usize; N],
    /// Lines.
    pub count: usize,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl<const N: usize> Send for Lines<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Lines<N> {}

impl<const N: usize> Lines<N> {
    /// Lines along `dim`; a zero-dimensional operand is one line of one element.
    pub fn new(
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
    pub fn line(&self, index: usize) -> [*mut u8; N] {
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
    pub fn across(&self) -> (usize, [usize; N]) {
        self.outer.last().copied().unwrap_or((1, [0; N]))
    }

    /// Where line `first` of group `group` starts in each operand.
    pub fn group(&self, group: usize, first: usize) -> [*mut u8; N] {
        let dims = &self.outer[..self.outer.len().saturating_sub(1)];
        self.at(dims, group, first)
    }
}

/// Reads `values.len()` floats at `stride` bytes from `from`, widened.
///
/// # Safety
/// They must be readable.
#[inline(always)]
pub unsafe fn read_run<T: Float>(from: *const T, stride: usize, values: &mut [T::Wide]) {
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
pub unsafe fn write_run<T: Float>(to: *mut T, stride: usize, values: &[T::Wide]) {
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

/// Writes neighbouring floats, narrowed, by streaming stores where `streamed` (then
/// `nontemporal::fence` is due).
///
/// # Safety
/// They must be writable.
#[inline(always)]
pub unsafe fn write_slice<T: Float>(to: *mut T, values: &[T::Wide], streamed: bool) {
    const PIECE: usize = 512;
    // SAFETY: every index is below `values.len()`; the caller vouches for those elements.
    unsafe {
        if !streamed {
            return write_run(to, size_of::<T>(), values);
        }
        let mut narrow = [T::ZERO; PIECE];
        for (i, piece) in values.chunks(PIECE).enumerate() {
            for (narrow, &value) in narrow.iter_mut().zip(piece) {
                *narrow = T::narrow(value);
            }
            let bytes = size_of_val(piece) / size_of::<T::Wide>() * size_of::<T>();
            nontemporal::copy(to.add(i * PIECE).cast(), narrow.as_ptr().cast(), bytes);
        }
    }
}

/// Calls `body(at, count)` on the slices, of at most [`SLICE`] elements, of `len` elements.
#[inline(always)]
pub fn slices(len: usize, mut body: impl FnMut(usize, usize)) {
    let mut at = 0;
    while at < len {
        let count = SLICE.min(len - at);
        body(at, count);
        at += count;
    }
}

/// Folds neighbouring elements, the i-th into lane i modulo [`LANES`], and the lanes pairwise with
/// `join`.
///
/// # Safety
/// `len` elements from `x` must be readable.
#[inline(always)]
pub unsafe fn fold<T: Float>(
    x: *const T,
    len: usize,
    empty: T::Wide,
    add: impl Fn(T::Wide, T::Wide) -> T::Wide,
    join: impl Fn(T::Wide, T::Wide) -> T::Wide,
) -> T::Wide {
    let mut lanes = [empty; LANES];
    let whole = len / LANES * LANES;
    // SAFETY: every index is below `len`; the caller vouches for those elements.
    unsafe {
        let mut at = 0;
        while at < whole {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = add(*lane, (*x.add(at + j)).widen());
            }
            at += LANES;
        }
        for (j, lane) in lanes.iter_mut().enumerate().take(len - whole) {
            *lane = add(*lane, (*x.add(whole + j)).widen());
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = join(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of a buffer.
#[inline(always)]
pub fn sum<R: Real>(values: &[R]) -> R {
    // SAFETY: the elements of a slice.
    unsafe { fold(values.as_ptr(), values.len(), R::ZERO, |a, b| a + b, |a, b| a + b) }
}
