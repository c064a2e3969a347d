//! Operands of one shape as channels, dimension 1 of any layout: a channel's elements come in
//! slices of neighbouring floats, in place where they lie so, otherwise by way of a buffer on the
//! stack. Slices follow from sizes and layouts alone, so sums over them are the same on any number
//! of threads. For layouts whose channels are neighbours in memory see `columns.rs`.

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{SLICE, read_run, write_run, write_slice};
use plimsoll_engine::map::check;
use plimsoll_engine::real::Float;
use plimsoll_engine::{CpuLaunch, Operand};

/// Runs of at least this many elements are worked on where they lie; shorter ones are gathered.
const LONG: usize = 512;

/// `N` operands of one shape. Strides in bytes.
#[derive(Clone, Debug)]
pub(super) struct Channels<const N: usize> {
    starts: [*mut u8; N],
    channel: [usize; N],
    /// The dimensions around a run, outermost first, merged.
    outer: SmallVec<[(usize, [usize; N]); 4]>,
    inner: [usize; N],
    /// Elements of a run.
    len: usize,
    /// Runs of a channel.
    runs: usize,
    /// Runs of a slice; 1 where a run is cut into slices.
    group: usize,
    /// Channels.
    pub(super) count: usize,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl<const N: usize> Send for Channels<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Channels<N> {}

impl<const N: usize> Channels<N> {
    /// The channels of operands of `T`.
    pub(super) fn new<T: Element>(
        launch: &CpuLaunch<'_>,
        operands: &[Operand<'_>; N],
    ) -> Result<Channels<N>> {
        let shape = operands[0].shape();
        if shape.len() < 2 || operands.iter().any(|operand| operand.shape() != shape) {
            let shapes: Vec<_> = operands.iter().map(|operand| operand.shape()).collect();
            return Err(Error::shape(
                launch.operation,
                format!("the kernel needs operands of one shape with channels, got {shapes:?}"),
            ));
        }
        operands.iter().try_for_each(|operand| check::<T>(launch, operand))?;
        let strides = |dim: usize| -> [usize; N] {
            std::array::from_fn(|i| operands[i].layout().strides()[dim] * size_of::<T>())
        };
        let mut outer: SmallVec<[(usize, [usize; N]); 4]> = SmallVec::new();
        let mut dims: SmallVec<[(usize, [usize; N]); 4]> = (0..shape.len())
            .filter(|&dim| dim != 1 && shape[dim] != 1)
            .map(|dim| (shape[dim], strides(dim)))
            .collect();
        dims.sort_by_key(|&(_, strides)| std::cmp::Reverse(strides[0]));
        for (size, strides) in dims {
            match outer.last_mut() {
                Some((last, above)) if (0..N).all(|i| above[i] == strides[i] * size) => {
                    *last *= size;
                    *above = strides;
                }
                _ => outer.push((size, strides)),
            }
        }
        let (len, inner) = outer.pop().unwrap_or((1, [size_of::<T>(); N]));
        let runs = outer.iter().map(|dim| dim.0).product();
        let group = if len >= LONG { 1 } else { SLICE / len.max(1) };
        let starts = std::array::from_fn(|i| operands[i].first_byte());
        Ok(Channels {
            starts,
            channel: strides(1),
            outer,
            inner,
            len,
            runs,
            group,
            count: shape[1],
        })
    }

    /// Whether the runs of operand `which` are elements one after another.
    pub(super) fn is_dense<T>(&self, which: usize) -> bool {
        self.inner[which] == size_of::<T>()
    }

    /// Slices of a channel.
    pub(super) fn slices(&self) -> usize {
        if self.len * self.runs == 0 {
            0
        } else if self.group > 1 {
            self.runs.div_ceil(self.group)
        } else {
            self.runs * self.len.div_ceil(SLICE)
        }
    }

    /// Calls `body(start, at, count)` on the runs, or the part of a run, that make up a slice:
    /// where it starts in operand `which`, elements before it in the slice, and its elements.
    #[inline(always)]
    fn pieces(
        &self,
        which: usize,
        channel: usize,
        slice: usize,
        mut body: impl FnMut(*mut u8, usize, usize),
    ) {
        let start = self.starts[which].wrapping_add(channel * self.channel[which]);
        if self.group == 1 {
            let each = self.len.div_ceil(SLICE);
            let (run, first) = (slice / each, slice % each * SLICE);
            let at = self.run(which, run) + first * self.inner[which];
            return body(start.wrapping_add(at), 0, SLICE.min(self.len - first));
        }
        let first = slice * self.group;
        for run in first..self.runs.min(first + self.group) {
            let at = start.wrapping_add(self.run(which, run));
            body(at, (run - first) * self.len, self.len);
        }
    }

    /// From a channel's first element to its run `run`, in bytes.
    #[inline(always)]
    fn run(&self, which: usize, mut run: usize) -> usize {
        let mut offset = 0;
        for (size, strides) in self.outer.iter().rev() {
            offset += run % size * strides[which];
            run /= size;
        }
        offset
    }

    /// A slice of operand `which`, widened: in `buffer`, or where it lies if it lies so.
    ///
    /// # Safety
    /// The operand must be readable, hold `T`, and have the channel and the slice.
    #[inline(always)]
    pub(super) unsafe fn fetch<'a, T: Float>(
        &self,
        which: usize,
        channel: usize,
        slice: usize,
        buffer: &'a mut [T::Wide; SLICE],
    ) -> &'a [T::Wide] {
        let in_place =
            self.group == 1 && self.is_dense::<T>(which) && T::DTYPE == <T::Wide as Element>::DTYPE;
        let mut found: *const T::Wide = buffer.as_ptr();
        let mut total = 0;
        self.pieces(which, channel, slice, |from, at, count| {
            total = at + count;
            if in_place {
                found = from.cast_const().cast();
            } else {
                let values = &mut buffer[at..total];
                // SAFETY: the caller vouches for the operand; pieces are inside of it.
                unsafe { read_run::<T>(from.cast_const().cast(), self.inner[which], values) };
            }
        });
        // SAFETY: `total` elements of the operand, which nobody writes, or of the buffer, which
        // were just written.
        unsafe { std::slice::from_raw_parts(found, total) }
    }

    /// Writes a slice of operand `which`, narrowed.
    ///
    /// # Safety
    /// The operand must be writable, hold `T`, and have the channel and the slice, which `values`
    /// is as long as; nobody else may write there. Streamed runs must be dense.
    #[inline(always)]
    pub(super) unsafe fn store<T: Float>(
        &self,
        which: usize,
        channel: usize,
        slice: usize,
        values: &[T::Wide],
        streamed: bool,
    ) {
        self.pieces(which, channel, slice, |to, at, count| {
            let values = &values[at..at + count];
            // SAFETY: the caller vouches for the operand; pieces are inside of it.
            unsafe {
                if streamed && self.group == 1 {
                    write_slice(to.cast::<T>(), values, true);
                } else {
                    write_run(to.cast::<T>(), self.inner[which], values);
                }
            }
        });
    }
}
