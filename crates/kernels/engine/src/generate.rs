//! Values made from an element's logical index alone (its place in row-major order), whatever
//! layout they land in: ranges, identity matrices, random numbers. And the walk over a layout in
//! logical order that such kernels need.

use plimsoll_core::{Dims, Layout};

use crate::Element;
use crate::Operand;
use crate::iterate::GRAIN;
use crate::parallel;
use crate::simd::{self, Level, LevelKernel};

/// Elements made at a time, in a buffer on the stack. A multiple of 4, so that each random
/// counter's four draws fall into one chunk.
pub const CHUNK: usize = 512;

/// Makes runs of elements.
pub trait Generate<T>: Sync {
    /// Writes the elements of logical indices `first..first + out.len()`; `first` is a multiple of
    /// [`CHUNK`]. Implementations are `#[inline(always)]`.
    fn generate<L: Level>(&self, first: usize, out: &mut [T]);
}

struct Run<'a, G, T>(&'a G, usize, &'a mut [T]);

impl<T, G: Generate<T>> LevelKernel for Run<'_, G, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        self.0.generate::<L>(self.1, self.2);
    }
}

/// Calls `body(start, len)` on the chunks of `numel` elements, from several threads when there are
/// many.
pub fn chunks(numel: usize, body: impl Fn(usize, usize) + Sync) {
    parallel::split(numel.div_ceil(CHUNK), GRAIN / CHUNK, |parts| {
        for part in parts {
            let start = part * CHUNK;
            body(start, CHUNK.min(numel - start));
        }
    });
}

/// Fills `out`, which holds `T`.
pub fn generate<T: Element, G: Generate<T>>(out: Operand<'_>, generator: &G) {
    assert_eq!(out.dtype(), T::DTYPE, "the output holds what is generated");
    chunks(out.layout().numel(), |start, len| {
        let mut values = [T::ZERO; CHUNK];
        let values = &mut values[..len];
        simd::dispatch_level(Run(generator, start, &mut *values));
        // SAFETY: `start..start + len` are logical indices of `out`, which holds `T`, and chunks
        // are disjoint.
        unsafe { store(out, start, values) }
    });
}

/// Writes `values` to the logical indices from `first` on.
///
/// # Safety
/// Those indices must be inside `out`, which must hold `T` and not be written by another thread
/// there.
pub unsafe fn store<T: Element>(out: Operand<'_>, first: usize, values: &[T]) {
    let start = out.first::<T>();
    let layout = out.layout();
    // SAFETY: the caller vouches for the indices; a layout's positions lie in its storage.
    unsafe {
        if layout.is_contiguous() {
            start.add(first).copy_from(values.as_ptr(), values.len());
        } else {
            for (offset, &value) in Walk::new(layout, first).zip(values) {
                *start.add(offset) = value;
            }
        }
    }
}

/// Reads the logical indices from `first` on into `values`.
///
/// # Safety
/// Those indices must be inside `input`, which must hold `T`.
pub unsafe fn load<T: Element>(input: Operand<'_>, first: usize, values: &mut [T]) {
    let start = input.first::<T>();
    let layout = input.layout();
    // SAFETY: the caller vouches for the indices; a layout's positions lie in its storage.
    unsafe {
        if layout.is_contiguous() {
            values.as_mut_ptr().copy_from(start.add(first), values.len());
        } else {
            for (offset, value) in Walk::new(layout, first).zip(values) {
                *value = *start.add(offset);
            }
        }
    }
}

/// Positions of a layout's elements in logical order, in elements from the layout's first. Endless:
/// it is the caller who stops at the last element.
#[derive(Debug)]
pub struct Walk<'a> {
    layout: &'a Layout,
    index: Dims,
    position: usize,
}

impl<'a> Walk<'a> {
    /// From logical index `first`.
    pub fn new(layout: &'a Layout, mut first: usize) -> Walk<'a> {
        let mut index = Dims::from_elem(0, layout.rank());
        let mut position = 0;
        for d in (0..layout.rank()).rev() {
            let size = layout.shape()[d].max(1);
            index[d] = first % size;
            first /= size;
            position += index[d] * layout.strides()[d];
        }
        Walk { layout, index, position }
    }

    /// Where the next element lies.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl Iterator for Walk<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let here = self.position;
        for d in (0..self.index.len()).rev() {
            let stride = self.layout.strides()[d];
            self.index[d] += 1;
            if self.index[d] < self.layout.shape()[d] {
                self.position += stride;
                break;
            }
            self.position -= (self.index[d] - 1) * stride;
            self.index[d] = 0;
        }
        Some(here)
    }
}

/// Writes `value` to logical index `index` of a tensor of any dtype.
///
/// # Safety
/// The index must be inside `operand`, and not be written by another thread.
pub unsafe fn store_real(operand: &Operand<'_>, index: usize, value: f64) {
    let position = Walk::new(operand.layout(), index).position();
    crate::match_dtype!(operand.dtype(), T => {
        // SAFETY: a layout's positions lie in its storage; the caller vouches for the index.
        unsafe { *operand.first::<T>().add(position) = T::from_f64(value) }
    });
}

/// Reads logical index `index` of a tensor of any dtype.
///
/// # Safety
/// The index must be inside `operand`.
pub unsafe fn load_real(operand: &Operand<'_>, index: usize) -> f64 {
    let position = Walk::new(operand.layout(), index).position();
    crate::match_dtype!(operand.dtype(), T => {
        // SAFETY: a layout's positions lie in its storage; the caller vouches for the index.
        unsafe { (*operand.first::<T>().add(position)).to_f64() }
    })
}
