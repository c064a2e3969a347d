//! The k greatest or least elements of each line, in order. The best of each group of neighbours
//! tell how good an element must be at least. Candidates are collected, and thrown out again down
//! to k whenever there is no more room; the worst of those keeps most elements out, whole blocks of
//! neighbours at a time. Among equal elements the first ones win.

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
    fn run<L: Level>(mut self) -> Candidates<'a, P> {
        let mut i = self.range.start;
        let mut worst = match self.bound() {
            Some(bound) => bound,
            // All that there is room for, and then only what is better.
            None => {
                i = self.range.end.min(i + self.found.pairs.len());
                self.fill(i)
            }
        };
        while i < self.range.end {
            let end = self.range.end.min(i + BLOCK);
            // Positions rise, so an equal key is never better.
            let mut entering = match end - i == BLOCK && self.is_dense() {
                true => self.below(i, worst),
                false => u32::MAX >> (BLOCK - (end - i)),
            };
            while entering != 0 {
                let at = i + entering.trailing_zeros() as usize;
                entering &= entering - 1;
                let key = T::widen(self.key(at));
                if key < worst {
                    worst = self.found.add(P::new(key, at)).unwrap_or(worst);
                }
            }
            i = end;
        }
        self.found.keep_best();
        self.found
    }
}

impl<T: SortKey, P: Pair> Look<'_, T, P> {
    fn is_dense(&self) -> bool {
        self.stride == size_of::<T>()
    }

    /// What is less is better.
    #[inline(always)]
    fn key(&self, i: usize) -> T::Bits {
        let flip = if self.largest { T::MASK } else { T::Bits::default() };
        // SAFETY: an element of the line.
        unsafe { *self.from.add(i * self.stride).cast::<T>() }.bits() ^ flip
    }

    /// The keys of a block from `i` on.
    #[inline(always)]
    fn block(&self, i: usize) -> [T::Bits; BLOCK] {
        let flip = if self.largest { T::MASK } else { T::Bits::default() };
        let block = self.from.wrapping_add(i * size_of::<T>()).cast::<T>();
        // SAFETY: the caller has a whole block of a dense line.
        std::array::from_fn(|lane| unsafe { *block.add(lane) }.bits() ^ flip)
    }

    /// The best key of a block.
    #[inline(always)]
    fn least(&self, i: usize) -> T::Bits {
        let block = self.block(i);
        block.into_iter().skip(1).fold(block[0], Ord::min)
    }

    /// A bit for each key of a block that is below `worst`.
    #[inline(always)]
    fn below(&self, i: usize, worst: u64) -> u32 {
        let bit = |(lane, key): (usize, T::Bits)| u32::from(T::widen(key) < worst) << lane;
        self.block(i).into_iter().enumerate().map(bit).fold(0, std::ops::BitOr::bitor)
    }

    /// Takes elements up to `end` as they come; says what key another must be below.
    #[inline(always)]
    fn fill(&mut self, end: usize) -> u64 {
        let start = self.range.start;
        for i in start..end {
            self.found.pairs[i - start] = P::new(T::widen(self.key(i)), i);
        }
        self.found.len = end - start;
        // Where nothing is thrown out, nothing is left to look at.
        self.found.keep_best().unwrap_or(u64::MAX)
    }

    /// A key that at least k elements are below: k groups of neighbours have one each. It keeps
    /// nearly all others out from the start. Nothing if the line has too few groups.
    #[inline(always)]
    fn bound(&mut self) -> Option<u64> {
        let Candidates { k, .. } = self.found;
        let blocks = self.range.len() / BLOCK;
        let each = blocks.div_ceil(self.found.pairs.len()).max(1);
        let groups = blocks / each;
        if !self.is_dense() || groups < 2 * k {
            return None;
        }
        for group in 0..groups {
            let start = self.range.start + group * each * BLOCK;
            let others = (1..each).map(|block| start + block * BLOCK);
            let best = others.fold(self.least(start), |best, at| best.min(self.least(at)));
            self.found.pairs[group] = P::new(T::widen(best), group);
        }
        let (_, last, _) = self.found.pairs[..groups].select_nth_unstable(k - 1);
        last.key().checked_add(1)
    }
}

/// The best pairs so far, which are the least, and some that are not.
struct Candidates<'a, P> {
    pairs: &'a mut [P],
    len: usize,
    k: usize,
}

impl<P: Pair> Candidates<'_, P> {
    /// Adds a pair, for which there is room: more than for k, unless a line has no more than k. If
    /// that was the last, only the best stay; then it says what key another must be below.
    #[inline(always)]
    fn add(&mut self, pair: P) -> Option<u64> {
        self.pairs[self.len] = pair;
        self.len += 1;
        if self.len == self.pairs.len() { self.keep_best() } else { None }
    }

    /// Throws out all but the best k, and says what key another must be below; nothing if there are
    /// no more.
    #[cold]
    fn keep_best(&mut self) -> Option<u64> {
        if self.len <= self.k {
            return None;
        }
        let (_, worst, _) = self.pairs[..self.len].select_nth_unstable(self.k - 1);
        self.len = self.k;
        Some(worst.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::testing::{Held, Lot, launch_all};

    /// Positions of a stable sort by key, the best first.
    fn naive(x: &[f64], largest: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..x.len()).collect();
        // NaN is greatest.
        let key = |i: usize| if x[i].is_nan() { f64::INFINITY } else { x[i] };
        order.sort_by(|&a, &b| {
            let ascending = key(a).total_cmp(&key(b)).then(x[a].is_nan().cmp(&x[b].is_nan()));
            if largest { ascending.reverse() } else { ascending }
        });
        order
    }

    #[test]
    fn lines_of_every_length_give_the_first_of_a_stable_sort() {
        let mut lot = Lot(17);
        for dtype in DType::ALL {
            // Fewer groups than elements wanted, enough of them, several blocks a group.
            for (len, k) in [(40, 7), (200, 3), (5_000, 1), (5_000, 50), (40_000, 9)] {
                let x = Held::random(&mut lot, dtype, &[2, len], true);
                let largest = lot.below(2) == 0;
                let mut out = [
                    Held::output(&mut lot, dtype, &[2, k]),
                    Held::output(&mut lot, DType::I64, &[2, k]),
                ];
                let bytes = parallel::with_threads(2, || topk_workspace_bytes(&x.meta, 1, k));
                // -0 and +0 are equal.
                let values: Vec<f64> = x.values().iter().map(|&x| x + 0.0).collect();
                let places: Vec<usize> =
                    values.chunks(len).flat_map(|x| naive(x, largest)[..k].to_vec()).collect();
                let what = format!("topk({k}) of {:?}, largest {largest}", x.meta);
                launch_all(
                    &[&x],
                    &mut out,
                    bytes,
                    |l| topk(l, 1, k, largest),
                    |out| {
                        let found: Vec<usize> =
                            out[1].values().iter().map(|&place| place as usize).collect();
                        assert_eq!(found, places, "{what}");
                        let lines = found.iter().enumerate().map(|(i, at)| i / k * len + at);
                        for (at, value) in lines.zip(out[0].values()) {
                            let same = value == values[at] || value.is_nan() && values[at].is_nan();
                            assert!(same, "{what}");
                        }
                    },
                );
            }
        }
    }
}
