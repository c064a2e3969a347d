//! The strided-iteration engine under every elementwise kernel: operands of any layout become tiles
//! (rows of equal length with constant byte strides) that a kernel's loop can run over.
//!
//! Operand 0 is the output; its shape governs and the others broadcast to it. Dimensions of size 1
//! are dropped, the rest sorted by the output's strides and merged where every operand allows it.
//! Where an input runs along another dimension than the output (a transposed matrix), blocks of it
//! are transposed in a small buffer on the stack (`transpose_blocks.rs`), so that both sides move
//! whole cache lines. Outputs too large for the caches are written around them (`nontemporal.rs`).
//!
//! This file knows no element types: `map.rs` has the typed loops. Reductions have their own
//! iteration (`reduce/`).

use std::ops::Range;

use smallvec::SmallVec;

use crate::Operand;
use crate::nontemporal;
use crate::parallel;

/// Elements under which a second thread is not worth its wake-up.
pub const GRAIN: usize = 32 * 1024;

/// Threads split at multiples of this many elements, so that they do not write one cache line
/// together.
const ALIGNED: usize = 256;

/// Elements that a thread takes at a time.
const CHUNK: usize = 64 * ALIGNED;

/// Bytes of the output that are computed while the lines of the next as many are on their way.
const FETCHED: usize = 4096;

/// Places of what is too large for the caches at which a thread works in turn, a piece at a
/// time. A processor fetches ahead from each place that it sees a program read on from; with one
/// place it has too few lines on their way to keep memory busy (a result of 400 MB: 33 to 36 ms,
/// with four 26 to 29; a sum over 64 MB: 3.1 ms, with four 2.3).
pub const PLACES: usize = 4;

/// Bytes of the output that are computed at a place before the next has its turn.
const PIECE: usize = 512;

/// Sizes under which a transposed pattern is not worth a block buffer.
const SMALLEST_TRANSPOSED: usize = 8;

/// `rows` rows of `len` elements. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tile<const N: usize> {
    /// The first element of each operand; the output is the first.
    pub pointers: [*mut u8; N],
    /// From one element of a row to the next.
    pub inner: [usize; N],
    /// From one row to the next.
    pub outer: [usize; N],
    /// Elements of a row.
    pub len: usize,
    /// Rows.
    pub rows: usize,
}

impl<const N: usize> Tile<N> {
    /// The pointers of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> [*mut u8; N] {
        std::array::from_fn(|i| self.pointers[i].wrapping_add(row * self.outer[i]))
    }
}

/// Pointers that threads of one launch share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starts<const N: usize>([*mut u8; N]);

// SAFETY: addresses only; the launch's claim lets any thread of the pool read its inputs, and the
// tiles that the threads get write disjoint parts of its output.
unsafe impl<const N: usize> Send for Starts<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Starts<N> {}

impl<const N: usize> Starts<N> {
    #[inline]
    pub(crate) fn at(&self, bytes: impl Fn(usize) -> usize) -> [*mut u8; N] {
        std::array::from_fn(|i| self.0[i].wrapping_add(bytes(i)))
    }
}

/// Calls `body` on tiles that together cover every element of `operands[0]` once, from several
/// threads when there are many. The other operands broadcast to its shape. `body` writes every
/// element of the tile's first operand and reads none, unless it is an input too: the tile may
/// stand in a buffer.
#[inline]
pub fn run<const N: usize>(operands: [Operand<'_>; N], body: impl Fn(&Tile<N>) + Sync) {
    let numel = operands[0].layout().numel();
    let (flat, inner) = flat_strides(&operands);
    if flat && (1..=GRAIN).contains(&numel) {
        // Most calls by far, and small ones count every instruction.
        let mut pointers = [std::ptr::null_mut(); N];
        for i in 0..N {
            pointers[i] = operands[i].first_byte();
        }
        return body(&Tile { pointers, inner, outer: [0; N], len: numel, rows: 1 });
    }
    let starts = Starts(std::array::from_fn(|i| operands[i].first_byte()));
    let streamed = nontemporal::is_streamed(&operands);
    if flat && !streamed {
        return run_flat(starts, inner, numel, &body);
    }
    Plan::new(&operands).run(starts, Ways { transpose: true, streamed }, &body);
}

/// [`run`] over many elements that every operand has one after another, or has one of.
fn run_flat<const N: usize>(
    starts: Starts<N>,
    inner: [usize; N],
    numel: usize,
    body: &(dyn Fn(&Tile<N>) + Sync),
) {
    let tile = |start: usize, len: usize| {
        let pointers = starts.at(|i| start * inner[i]);
        body(&Tile { pointers, inner, outer: [0; N], len, rows: 1 });
    };
    if (1..N).any(|i| starts.0[i] == starts.0[0]) {
        // What is read is written: its lines come in order, and the processor sees it.
        let large = numel * inner[0] >= nontemporal::LARGE_BYTES;
        return sweep(numel, &|chunk| {
            let part = if large { part_of_place(&chunk) } else { 0 };
            split_alternating(chunk, part, PIECE / inner[0], |_, start, len| tile(start, len));
        });
    }
    sweep(numel, &|chunk| {
        let step = FETCHED / inner[0];
        for start in chunk.clone().step_by(step) {
            let next = start + step..chunk.end.min(start + 2 * step);
            fetch(starts.at(|i| next.start * inner[i])[0], next.len() * inner[0]);
            tile(start, step.min(chunk.end - start));
        }
    });
}

/// [`run`] for kernels that use some operands' addresses rather than their elements (an index added
/// to an address), or only read: tiles point into the operands themselves, never into a buffer.
pub fn run_addresses<const N: usize>(operands: [Operand<'_>; N], body: impl Fn(&Tile<N>) + Sync) {
    let starts = Starts(std::array::from_fn(|i| operands[i].first_byte()));
    Plan::new(&operands).run(starts, Ways { transpose: false, streamed: false }, &body);
}

/// Operands of which any part can be gone through: for kernels that divide the work of several
/// tensors among threads by themselves.
#[derive(Debug)]
pub struct Ranges<const N: usize> {
    plan: Plan<N>,
    starts: Starts<N>,
}

impl<const N: usize> Ranges<N> {
    /// The first operand's shape governs; the others broadcast to it.
    pub fn new(operands: [Operand<'_>; N]) -> Ranges<N> {
        let starts = Starts(std::array::from_fn(|i| operands[i].first_byte()));
        Ranges { plan: Plan::new(&operands), starts }
    }

    /// How many elements there are.
    pub fn numel(&self) -> usize {
        self.plan.numel
    }

    /// Calls `body` on tiles that together cover the elements of `range` once, counted in an order
    /// that is the same for all calls. Tiles point into the operands themselves.
    pub fn run(&self, range: Range<usize>, mut body: impl FnMut(&Tile<N>)) {
        debug_assert!(range.end <= self.plan.numel, "a range of elements that are there");
        self.plan.range(self.starts, range.start, range.end, usize::MAX, &mut |tile| body(tile));
    }
}

/// What may come between a kernel and its operands' memory.
#[derive(Clone, Copy)]
struct Ways {
    /// Inputs may be transposed into buffers.
    transpose: bool,
    /// The output may be written to a buffer and streamed from there.
    streamed: bool,
}

/// Whether every operand lies row-major like the output, or is a single element; and its byte
/// strides then.
#[inline(always)]
fn flat_strides<const N: usize>(operands: &[Operand<'_>; N]) -> (bool, [usize; N]) {
    let out = operands[0].layout();
    let mut flat = out.is_contiguous();
    let mut inner = [operands[0].dtype().size_bytes(); N];
    for i in 1..N {
        let layout = operands[i].layout();
        let alike = layout.is_contiguous() && layout.same_shape(out);
        flat = flat && (alike || layout.shape().iter().all(|&size| size == 1));
        inner[i] = if alike { operands[i].dtype().size_bytes() } else { 0 };
    }
    (flat, inner)
}

/// Splits `work` elements over the threads at multiples of [`ALIGNED`]: calls `body(start, len)`.
fn split_aligned(work: usize, body: &(dyn Fn(usize, usize) + Sync)) {
    parallel::split(work.div_ceil(ALIGNED), GRAIN / ALIGNED, |units| {
        let start = units.start * ALIGNED;
        body(start, work.min(units.end * ALIGNED) - start);
    });
}

/// [`split_aligned`] in chunks of at most [`CHUNK`] elements, gone through there and back.
fn sweep(work: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let units = work.div_ceil(ALIGNED);
    let parts = parallel::parts(units, GRAIN / ALIGNED);
    parallel::split_there_and_back(parts, units, CHUNK / ALIGNED, |_, units| {
        body(units.start * ALIGNED..work.min(units.end * ALIGNED));
    });
}

/// Calls `body(place, start, len)` on pieces of at most `piece` elements, from [`PLACES`] parts of
/// `range` (`part` elements each) in turn, and at last on all that they leave over, as one more
/// place.
#[inline]
fn split_alternating(
    range: Range<usize>,
    part: usize,
    piece: usize,
    mut body: impl FnMut(usize, usize, usize),
) {
    for at in (0..part).step_by(piece) {
        for place in 0..PLACES {
            body(place, range.start + place * part + at, piece.min(part - at));
        }
    }
    let rest = range.start + PLACES * part;
    if rest < range.end {
        body(PLACES, rest, range.end - rest);
    }
}

/// Elements that each place has.
fn part_of_place(range: &Range<usize>) -> usize {
    range.len() / PLACES / ALIGNED * ALIGNED
}

/// Asks for the lines of `bytes` bytes that will be written soon. A store to a line that is not
/// there makes the processor read it first, and it does not see stores coming as it sees loads.
#[inline]
fn fetch(from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: part of x86-64's baseline; asks for a line and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}

/// The merged dimensions, outermost first. Never without a dimension, never empty of elements
/// unless `numel` is 0.
#[derive(Debug)]
pub(crate) struct Plan<const N: usize> {
    pub(crate) sizes: SmallVec<[usize; 6]>,
    pub(crate) strides: SmallVec<[[usize; N]; 6]>,
    pub(crate) element_bytes: [usize; N],
    numel: usize,
}

impl<const N: usize> Plan<N> {
    fn new(operands: &[Operand<'_>; N]) -> Plan<N> {
        let element_bytes = std::array::from_fn(|i| operands[i].dtype().size_bytes());
        let shape = operands[0].shape();
        let mut dims: SmallVec<[(usize, [usize; N]); 6]> = SmallVec::new();
        for (d, &size) in shape.iter().enumerate() {
            if size == 1 {
                continue;
            }
            let strides: [usize; N] = std::array::from_fn(|i| {
                let layout = operands[i].layout();
                // Dimensions are matched from the last; a missing one, or one of size 1, stretches.
                match (d + layout.rank()).checked_sub(shape.len()) {
                    Some(own) if layout.shape()[own] != 1 => {
                        // Or loops would leave its memory.
                        assert_eq!(layout.shape()[own], size, "operands broadcast to the output");
                        layout.strides()[own] * element_bytes[i]
                    }
                    _ => 0,
                }
            });
            // Insertion keeps equal strides in their order.
            let at = dims.iter().position(|dim| dim.1[0] < strides[0]).unwrap_or(dims.len());
            dims.insert(at, (size, strides));
        }
        let mut plan = Plan {
            sizes: SmallVec::new(),
            strides: SmallVec::new(),
            element_bytes,
            numel: operands[0].layout().numel(),
        };
        for (size, strides) in dims {
            match (plan.sizes.last_mut(), plan.strides.last_mut()) {
                (Some(last), Some(outer)) if (0..N).all(|i| outer[i] == strides[i] * size) => {
                    *last *= size;
                    *outer = strides;
                }
                _ => {
                    plan.sizes.push(size);
                    plan.strides.push(strides);
                }
            }
        }
        if plan.sizes.is_empty() {
            plan.sizes.push(1);
            plan.strides.push([0; N]);
        }
        plan
    }

    fn run(&self, starts: Starts<N>, ways: Ways, body: &(dyn Fn(&Tile<N>) + Sync)) {
        if self.numel == 0 {
            return;
        }
        if let Some(across) = self.transposed_dimension().filter(|_| ways.transpose) {
            return self.run_transposed(starts, across, ways.streamed, body);
        }
        let streamed = ways.streamed && self.output_is_dense();
        if self.numel <= GRAIN && !streamed {
            return self.range(starts, 0, self.numel, usize::MAX, &mut |tile| body(tile));
        }
        if streamed {
            split_aligned(self.numel, &|start, len| {
                self.range_streamed(starts, start, start + len, body);
            });
            return;
        }
        sweep(self.numel, &|chunk| {
            self.range(starts, chunk.start, chunk.end, usize::MAX, &mut |tile| body(tile));
        });
    }

    /// Tiles of at most `most` elements for the elements `start..end`, counted in the plan's order
    /// of dimensions.
    fn range(
        &self,
        starts: Starts<N>,
        start: usize,
        end: usize,
        most: usize,
        body: &mut dyn FnMut(&mut Tile<N>),
    ) {
        let last = self.sizes.len() - 1;
        let (len, inner) = (self.sizes[last], self.strides[last]);
        let (height, outer) =
            if last == 0 { (1, [0; N]) } else { (self.sizes[last - 1], self.strides[last - 1]) };
        let mut at = start;
        while at < end {
            let (row, column) = (at / len, at % len);
            let left = most.min(end - at);
            // A part of a row, or as many whole rows as this thread and this slab have.
            let (rows, columns) = if column != 0 || left < len {
                (1, left.min(len - column))
            } else {
                ((left / len).min(height - row % height), len)
            };
            let offsets = self.offsets(row, last);
            body(&mut Tile {
                pointers: starts.at(|i| offsets[i] + column * inner[i]),
                inner,
                outer,
                len: columns,
                rows,
            });
            at += rows * columns;
        }
    }

    /// Whether the output's elements, in the plan's order, lie one after another.
    fn output_is_dense(&self) -> bool {
        let mut stride = self.element_bytes[0];
        self.sizes.iter().zip(&self.strides).rev().all(|(size, strides)| {
            let dense = strides[0] == stride;
            stride *= size;
            dense
        })
    }

    /// [`Plan::range`] with the output by way of a stream, for a dense output.
    fn range_streamed(
        &self,
        starts: Starts<N>,
        start: usize,
        end: usize,
        body: &(dyn Fn(&Tile<N>) + Sync),
    ) {
        let width = self.element_bytes[0];
        // Rows of several dimensions are not cut into pieces: to find a place among them takes as
        // long as a piece.
        let part = if self.sizes.len() == 1 { part_of_place(&(start..end)) } else { 0 };
        let mut streams: [nontemporal::Stream; PLACES + 1] = std::array::from_fn(|place| {
            nontemporal::Stream::new(starts.0[0].wrapping_add((start + place * part) * width))
        });
        split_alternating(start..end, part, PIECE / width, |place, at, len| {
            let to = &mut streams[place];
            self.range(starts, at, at + len, nontemporal::ROOM / width, &mut |tile| {
                tile.pointers[0] = to.room();
                tile.outer[0] = tile.len * width;
                body(tile);
                // SAFETY: the body has written the whole tile, at most `ROOM` bytes, row after row
                // as in the dense output.
                unsafe { to.advance(tile.rows * tile.len * width) };
            });
        });
    }

    /// Byte offsets of index `index` into the first `dims` dimensions.
    pub(crate) fn offsets(&self, mut index: usize, dims: usize) -> [usize; N] {
        let mut offsets = [0; N];
        for d in (0..dims).rev() {
            let at = index % self.sizes[d];
            index /= self.sizes[d];
            for (offset, stride) in offsets.iter_mut().zip(&self.strides[d]) {
                *offset += at * stride;
            }
        }
        offsets
    }

    /// The dimensions other than `across` and the last.
    pub(crate) fn without(&self, across: usize) -> Plan<N> {
        let mut rest = Plan {
            sizes: self.sizes.clone(),
            strides: self.strides.clone(),
            element_bytes: self.element_bytes,
            numel: 0,
        };
        rest.sizes.pop();
        rest.strides.pop();
        rest.sizes.remove(across);
        rest.strides.remove(across);
        rest
    }

    /// Whether input `i` runs along dimension `d` while the output runs along the last.
    pub(crate) fn runs_along(&self, i: usize, d: usize) -> bool {
        let inner = self.strides[self.sizes.len() - 1][i];
        inner != 0 && inner != self.element_bytes[i] && self.strides[d][i] == self.element_bytes[i]
    }

    /// The dimension along which some input is contiguous and the output is not, if there is one
    /// worth transposing blocks for.
    fn transposed_dimension(&self) -> Option<usize> {
        let last = self.sizes.len() - 1;
        if last == 0 || self.sizes[last] < SMALLEST_TRANSPOSED || self.numel < 1024 {
            return None;
        }
        (0..last).find(|&d| {
            self.sizes[d] >= SMALLEST_TRANSPOSED && (1..N).any(|i| self.runs_along(i, d))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuLaunch;
    use crate::map::{Map1, map1};
    use crate::simd::Isa;
    use crate::simd::Level;
    use crate::testing::{Held, at, launch, launch_in_place};
    use plimsoll_core::{DType, Layout, Result};
    use std::marker::PhantomData;

    struct AddOne<T>(PhantomData<fn() -> T>);

    impl<T> Clone for AddOne<T> {
        fn clone(&self) -> AddOne<T> {
            *self
        }
    }
    impl<T> Copy for AddOne<T> {}

    impl<T: crate::Element> Map1 for AddOne<T> {
        type A = T;
        type Out = T;
        #[inline(always)]
        fn call<L: Level>(self, a: T) -> T {
            T::from_f64(a.to_f64() + 1.0)
        }
    }

    fn add_one(launch: &CpuLaunch<'_>) -> Result<()> {
        crate::match_dtype!(launch.inputs[0].dtype(), T => map1(launch, AddOne::<T>(PhantomData)))
    }

    /// Around the sizes from which several places, chunks and threads are used: every element once,
    /// and nothing else.
    #[test]
    fn large_operands_are_covered_once() {
        let lengths = [GRAIN - 1, GRAIN + 1, 2 * GRAIN, PLACES * CHUNK + 3 * ALIGNED + 5, 200_003];
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::F64] {
            for (length, offset) in lengths.into_iter().zip([0, 1, 3, 0, 7]) {
                let layout = Layout::strided(&[length], &[1], offset).unwrap();
                let mut next = 0;
                let mut counted = || {
                    next = (next + 1) % 100;
                    f64::from(next)
                };
                let x = Held::new(dtype, layout.clone(), &mut counted);
                let want: Vec<f64> = x.values().iter().map(|x| x + 1.0).collect();
                for threads in [1, 2, 3] {
                    let what = format!("{length} of {dtype} from {offset}, {threads} threads");
                    let mut out = [Held::new(dtype, layout.clone(), || 0.0)];
                    let mut target = x.clone();
                    at(Isa::detected(), threads, || {
                        launch(&[&x], &mut out, 0, add_one).unwrap();
                        launch_in_place(&mut target, &[], add_one).unwrap();
                    });
                    out[0].check_outside();
                    target.check_outside();
                    assert!(out[0].values() == want, "{what}");
                    assert!(target.values() == want, "{what}, in place");
                }
            }
        }
    }
}
