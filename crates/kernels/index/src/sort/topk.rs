//! The k greatest or least elements of each line, in order. Candidates are collected, and thrown
//! out again down to k whenever there is no more room; the worst of those keeps most elements out,
//! whole blocks of neighbours at a time. Among equal elements the first ones win.

use std::marker::PhantomData;

use half::{bf16, f16};
use plimsoll_core::{DType, Error, Layout, Result};

use super::key::{Narrow, Pair, SortKey, Wide};
use plimsoll_engine::along_dim::Lines;
use plimsoll_engine::map::check;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Meta, Operand, Truth, parallel};

/// Elements that pay for waking one more thread.
const GRAIN: usize = 1 << 14;
/// The shortest part of a line that gets a thread of its own.
const PART: usize = 1 << 16;
/// Neighbours that are held against the worst candidate together.
const BLOCK: usize = 32;
/// Candidates beyond twice k: they are thrown out seldom.
const MORE: usize = 512;

/// Candidates that there is room for.
fn room(len: usize, k: usize) -> usize {
    len.min(2 * k + MORE).max(k)
}

/// How many collect at once: threads on lines of their own, or together on one.
fn parts(input: &Meta, dim: usize) -> (usize, bool) {
    let len = input.shape().get(dim).copied().unwrap_or(1);
    let lines = input.layout.numel().checked_div(len).unwrap_or(0);
    let threads = parallel::threads();
    let together = lines < threads && len >= 2 * PART;
    let parts = if together {
        threads.min(len / PART)
    } else {
        threads.min(lines).min((lines * len / GRAIN).max(1))
    };
    (parts.max(1), together)
}

/// Scratch of [`topk`].
pub fn topk_workspace_bytes(input: &Meta, dim: usize, k: usize) -> usize {
    let len = input.shape().get(dim).copied().unwrap_or(1);
    parts(input, dim).0 * room(len, k) * size_of::<Wide>()
}

/// `[x]` -> [the k greatest (or least) along `dim` in order, their positions (i64)].
pub fn topk(launch: &CpuLaunch<'_>, dim: usize, k: usize, largest: bool) -> Result<()> {
    let ([input], [values, positions]) = (launch.inputs, launch.outputs) else {
        return Err(Error::invalid_argument("the kernel has one input and two outputs")
            .in_operation(launch.operation));
    };
    check::<i64>(launch, positions)?;
    let needed = topk_workspace_bytes(input.meta(), dim, k);
    if values.dtype() != input.dtype() || launch.workspace.bytes() < needed {
        return Err(plimsoll_engine::wrong_dtype(launch.operation, values.dtype()));
    }
    // The outputs as if they were as long as the input: only their first k elements are used.
    let lengthened = [lengthened(values, input)?, lengthened(positions, input)?];
    // SAFETY: the same memory; elements past the first k of a line are never touched.
    let [values, positions] = [(values, &lengthened[0]), (positions, &lengthened[1])]
        .map(|(operand, meta)| unsafe { with_meta(operand, meta) });
    let lines = Lines::new(launch, &[*input, values, positions], dim)?;
    if k == 0 || lines.count == 0 {
        return Ok(());
    }
    let (parts, together) = parts(input.meta(), dim);
    let pairs = Shared(launch.workspace.pointer().cast::<Wide>());
    let job = Job { lines: &lines, pairs, k, largest, parts, together };
    match input.dtype() {
        DType::Bool => job.of::<Truth>(),
        DType::U8 => job.of::<u8>(),
        DType::I8 => job.of::<i8>(),
        DType::I16 => job.of::<i16>(),
        DType::I32 => job.of::<i32>(),
        DType::I64 => job.of::<i64>(),
        DType::F16 => job.of::<f16>(),
        DType::BF16 => job.of::<bf16>(),
        DType::F32 => job.of::<f32>(),
        DType::F64 => job.of::<f64>(),
    }
    Ok(())
}

fn lengthened(output: &Operand<'_>, input: &Operand<'_>) -> Result<Meta> {
    let layout = Layout::strided(input.shape(), output.layout().strides(), 0)?;
    Ok(Meta { layout, dtype: output.dtype() })
}

/// # Safety
/// Elements that the operand does not have are not to be touched.
unsafe fn with_meta<'a>(operand: &Operand<'_>, meta: &'a Meta) -> Operand<'a> {
    // SAFETY: the caller's promise.
    unsafe { Operand::new(operand.first_byte(), meta) }
}

struct Job<'a> {
    lines: &'a Lines<3>,
    pairs: Shared<Wide>,
    k: usize,
    largest: bool,
    parts: usize,
    together: bool,
}

impl Job<'_> {
    fn of<T: SortKey>(&self) {
        if T::BITS <= 32 && u32::try_from(self.lines.len).is_ok() {
            self.run::<T, Narrow>();
        } else {
            self.run::<T, Wide>();
        }
    }

    fn run<T: SortKey, P: Pair>(&self) {
        let (len, count) = (self.lines.len, self.lines.count);
        if !self.together {
            parallel::fork(self.parts, |part| {
                for line in parallel::part_range(count, self.parts, part) {
                    let found = self.select::<T, P>(line, 0..len, part);
                    self.write::<T, P>(line, found);
                }
            });
            return;
        }
        for line in 0..count {
            parallel::fork(self.parts, |part| {
                let range = parallel::part_range(len, self.parts, part);
                self.select::<T, P>(line, range, part);
            });
            // What the parts found goes to the first part's.
            let first = self.found(len, 0);
            let mut all = Candidates { pairs: self.pairs::<P>(0), len: first, k: self.k };
            for part in 1..self.parts {
                let found = self.found(len, part);
                for &pair in &self.pairs::<P>(part)[..found] {
                    all.add(pair);
                }
            }
            self.write::<T, P>(line, all);
        }
    }

    /// How many pairs a part leaves.
    fn found(&self, len: usize, part: usize) -> usize {
        self.k.min(parallel::part_range(len, self.parts, part).len())
    }

    #[allow(clippy::mut_from_ref, reason = "each part has pairs of its own")]
    fn pairs<P: Pair>(&self, part: usize) -> &mut [P] {
        const { assert!(size_of::<P>() <= size_of::<Wide>()) };
        let room = room(self.lines.len, self.k);
        // SAFETY: the workspace has room for `parts` times as many wide pairs; a part is one
        // thread's at a time, and every pair is written before it is read.
        unsafe { std::slice::from_raw_parts_mut(self.pairs.add(part * room).cast(), room) }
    }

    fn select<T: SortKey, P: Pair>(
        &self,
        line: usize,
        range: std::ops::Range<usize>,
        part: usize,
    ) -> Candidates<'_, P> {
        let found = Candidates { pairs: self.pairs(part), len: 0, k: self.k };
        let stride = self.lines.strides[0];
        let (from, largest) = (self.lines.line(line)[0], self.largest);
        let look = Look::<T, P> { from, stride, range, largest, found, dtype: PhantomData };
        simd::dispatch_level(look)
    }

    fn write<T: SortKey, P: Pair>(&self, line: usize, mut found: Candidates<'_, P>) {
        found.keep_best();
        let pairs = &mut found.pairs[..found.len];
        pairs.sort_unstable();
        let [from, values, positions] = self.lines.line(line);
        let strides = self.lines.strides;
        for (rank, pair) in pairs.iter().enumerate() {
            let position = pair.position();
            // SAFETY: an element of the line, and of the first k of the outputs' lines.
            unsafe {
                *values.wrapping_add(rank * strides[1]).cast::<T>() =
                    *from.wrapping_add(position * strides[0]).cast::<T>();
                *positions.wrapping_add(rank * strides[2]).cast::<i64>() = position as i64;
            }
        }
    }
}

/// A walk along a range of a line, its elements `stride` bytes apart.
struct Look<'a, T, P> {
    from: *const u8,
    stride: usize,
    range: std::ops::Range<usize>,
    largest: bool,
    found: Candidates<'a, P>,
    dtype: PhantomData<T>,
}

impl<'a, T: SortKey, P: Pair> LevelKernel for Look<'a, T, P> {
    type Output = Candidates<'a, P>;
    #[inline(always)]
    fn run<L: Level>(self) -> Candidates<'a, P> {
        let Look { from, stride, range, largest, mut found, .. } = self;
        let flip = if largest { T::MASK } else { T::Bits::default() };
        // SAFETY: the range is of the line's elements.
        let key = |i: usize| unsafe { *from.add(i * stride).cast::<T>() }.bits() ^ flip;
        // All that there is room for, and then only what is better.
        let filled = range.end.min(range.start + found.pairs.len());
        for i in range.start..filled {
            found.pairs[i - range.start] = P::new(T::widen(key(i)), i);
        }
        found.len = filled - range.start;
        let mut worst = found.keep_best();
        let mut i = filled;
        while i < range.end {
            let end = range.end.min(i + BLOCK);
            // Positions rise, so an equal key is never better.
            let enters = |key: T::Bits| T::widen(key) < worst;
            let any = if end - i == BLOCK && stride == size_of::<T>() {
                let block = from.wrapping_add(i * stride).cast::<T>();
                // SAFETY: as above.
                let key = |lane: usize| unsafe { *block.add(lane) }.bits() ^ flip;
                let least = (1..BLOCK).fold(key(0), |least, lane| least.min(key(lane)));
                enters(least)
            } else {
                true
            };
            if any {
                for i in i..end {
                    if T::widen(key(i)) < worst {
                        worst = found.add(P::new(T::widen(key(i)), i)).unwrap_or(worst);
                    }
                }
            }
            i = end;
        }
        found.keep_best();
        found
    }
}

/// The best pairs so far, which are the least, and some that are not.
struct Candidates<'a, P> {
    pairs: &'a mut [P],
    len: usize,
    k: usize,
}

impl<P: Pair> Candidates<'_, P> {
    /// Adds a pair. If that was the last for which there was room, only the best stay; then it says
    /// what key another must be below.
    #[inline(always)]
    fn add(&mut self, pair: P) -> Option<u64> {
        if self.len == self.pairs.len() {
            // Only where there is room for k alone.
            self.keep_best();
            if self.len == self.pairs.len() {
                return self.replace_worst(pair);
            }
        }
        self.pairs[self.len] = pair;
        self.len += 1;
        (self.len == self.pairs.len()).then(|| self.keep_best())
    }

    /// As [`Candidates::add`] where k fill all the room.
    #[cold]
    fn replace_worst(&mut self, pair: P) -> Option<u64> {
        let (at, worst) = self.pairs.iter().copied().enumerate().max_by_key(|&(_, pair)| pair)?;
        if pair < worst {
            self.pairs[at] = pair;
        }
        self.pairs.iter().max().map(|worst| worst.key())
    }

    /// Throws out all but the best k, and says what key another must be below: none as long as
    /// there are fewer.
    #[cold]
    fn keep_best(&mut self) -> u64 {
        if self.len <= self.k {
            let full = self.len == self.k;
            let worst = self.pairs[..self.len].iter().max().filter(|_| full);
            return worst.map_or(u64::MAX, |worst| worst.key());
        }
        let (_, worst, _) = self.pairs[..self.len].select_nth_unstable(self.k - 1);
        self.len = self.k;
        worst.key()
    }
}
