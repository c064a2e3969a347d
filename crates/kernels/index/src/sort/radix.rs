//! Sorting one row: least significant digit first, eight bits a pass, so that a pass is a stable
//! distribution into 256 places and nothing is ever compared.
//!
//! All histograms are counted in one reading of the row; a digit that is the same everywhere (the
//! upper bytes of small integers) costs no pass. The last pass writes keys and positions straight
//! into the outputs. Short rows are sorted by comparing pairs, which gives the same order because
//! pairs are unique.

use std::marker::PhantomData;

use super::key::{Pair, SortKey};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;

/// Places of a digit.
pub(super) const PLACES: usize = 256;
/// Digits of the longest key.
pub(super) const MOST_DIGITS: usize = 8;
/// In a part's set of histograms, the one after the digits: see `count_all`.
const SPECIAL: usize = MOST_DIGITS;
/// Histograms of a part's set.
pub(super) const SETS: usize = MOST_DIGITS + 1;
/// Rows shorter than this are sorted by comparison.
pub(super) const SHORT: usize = 256;

/// One row with the memory to sort it in.
pub(super) struct SortRow<T, P> {
    pub(super) keys_in: *const T,
    pub(super) keys_out: *mut T,
    pub(super) positions_out: *mut i64,
    pub(super) len: usize,
    pub(super) descending: bool,
    /// Room for `len` pairs each. The second may lie over `positions_out`: the last pass reads the
    /// first.
    pub(super) buffers: [*mut P; 2],
    pub(super) pair: PhantomData<P>,
}

// SAFETY: the threads of one sort share the pointers and write disjoint places of them.
unsafe impl<T: SortKey, P: Pair> Sync for SortRow<T, P> {}

/// Where a pass reads from.
#[derive(Clone, Copy)]
enum From {
    Input,
    Buffer(usize),
}

impl<T: SortKey, P: Pair> SortRow<T, P> {
    const DIGITS: usize = (T::BITS / 8) as usize;

    /// The key in sorting direction: mirrored for descending, which keeps equal keys in their
    /// order.
    #[inline(always)]
    fn directed(&self, key: u64) -> u64 {
        if self.descending { !key & (u64::MAX >> (64 - T::BITS)) } else { key }
    }

    #[inline(always)]
    unsafe fn element(&self, position: usize) -> T {
        debug_assert!(position < self.len, "positions are those of the row");
        // SAFETY: inside the row, which the caller of the sort vouches for.
        unsafe { *self.keys_in.add(position) }
    }

    #[inline(always)]
    unsafe fn pair(&self, from: From, index: usize) -> P {
        // SAFETY: `index < len`; buffers hold pairs that an earlier pass wrote.
        unsafe {
            match from {
                From::Input => P::new(self.directed(self.element(index).key()), index),
                From::Buffer(buffer) => *self.buffers[buffer].add(index),
            }
        }
    }

    #[inline(always)]
    unsafe fn put_out(&self, to: usize, pair: P, plain: bool) {
        // SAFETY: `to < len`.
        unsafe {
            *self.keys_out.add(to) = if plain {
                T::from_key(self.directed(pair.key()))
            } else {
                self.element(pair.position())
            };
            *self.positions_out.add(to) = pair.position() as i64;
        }
    }

    /// Sorts on this thread.
    ///
    /// # Safety
    /// The row's pointers cover `len` elements, positions and pairs; outputs overlap no input.
    pub(super) unsafe fn sort(&self) {
        // SAFETY: the caller's contract.
        unsafe {
            if self.len < SHORT {
                return self.sort_short();
            }
            let mut histograms = [[0u32; PLACES]; MOST_DIGITS];
            let mut plain = true;
            for index in 0..self.len {
                let element = self.element(index);
                plain &= element.is_plain();
                let key = self.directed(element.key());
                for digit in 0..Self::DIGITS {
                    histograms[digit][digit_of(key, digit)] += 1;
                }
            }
            let passes = Passes::of::<T>(|digit| {
                histograms[digit].iter().any(|&count| count as usize == self.len)
            });
            for pass in 0..passes.count {
                let mut next = starts(&histograms[passes.digits[pass]]);
                self.pass(&passes, pass, 0..self.len, &mut next, plain);
            }
            if passes.count == 0 {
                self.copy(0..self.len);
            }
        }
    }

    /// Distributes a range of the source by one digit, to the places in `next`.
    #[inline(always)]
    unsafe fn pass<N: NextSlot>(
        &self,
        passes: &Passes,
        pass: usize,
        range: std::ops::Range<usize>,
        next: &mut [N; PLACES],
        plain: bool,
    ) {
        let digit = passes.digits[pass];
        let from =
            if pass == 0 { From::Input } else { From::Buffer(passes.buffer_after(pass - 1)) };
        let is_last = pass + 1 == passes.count;
        for index in range {
            // SAFETY: places are those of the histogram, below `len` and each used once.
            unsafe {
                let pair = self.pair(from, index);
                let place = &mut next[digit_of(pair.key(), digit)];
                let to = place.take();
                if is_last {
                    self.put_out(to, pair, plain);
                } else {
                    *self.buffers[passes.buffer_after(pass)].add(to) = pair;
                }
            }
        }
    }

    /// Every key is equal: the order is the input's.
    unsafe fn copy(&self, range: std::ops::Range<usize>) {
        for index in range {
            // SAFETY: inside the row.
            unsafe {
                *self.keys_out.add(index) = self.element(index);
                *self.positions_out.add(index) = index as i64;
            }
        }
    }

    unsafe fn sort_short(&self) {
        // SAFETY: the first buffer holds `len` pairs and overlaps nothing.
        unsafe {
            let mut plain = true;
            for index in 0..self.len {
                plain &= self.element(index).is_plain();
                *self.buffers[0].add(index) = self.pair(From::Input, index);
            }
            let pairs = std::slice::from_raw_parts_mut(self.buffers[0], self.len);
            pairs.sort_unstable();
            for (index, pair) in pairs.iter().enumerate() {
                self.put_out(index, *pair, plain);
            }
        }
    }

    /// Sorts with `parts` threads on every pass. `counts` holds [`SETS`] histograms for each part.
    ///
    /// # Safety
    /// As for [`SortRow::sort`]; `counts` is writable for that many.
    pub(super) unsafe fn sort_together(&self, parts: usize, counts: *mut [usize; PLACES]) {
        let counts = Shared(counts);
        let range = |part: usize| parallel::part_range(self.len, parts, part);
        // SAFETY: each part has its own set of histograms.
        parallel::fork(parts, |part| unsafe {
            self.count_all(
                range(part),
                std::slice::from_raw_parts_mut(counts.add(part * SETS), SETS),
            );
        });
        // SAFETY: the parts have finished with the histograms.
        let all = unsafe { std::slice::from_raw_parts_mut(counts.0, parts * SETS) };
        let plain = all.chunks(SETS).all(|set| set[SPECIAL][0] == 0);
        let passes = Passes::of::<T>(|digit| {
            let total = |place| all.chunks(SETS).map(|set| set[digit][place]).sum::<usize>();
            (0..PLACES).any(|place| total(place) == self.len)
        });
        for pass in 0..passes.count {
            let digit = passes.digits[pass];
            if pass > 0 {
                // Elements have moved between the parts' ranges: count this digit again.
                let from = From::Buffer(passes.buffer_after(pass - 1));
                // SAFETY: each part has its own histogram, and reads pairs that the last pass
                // wrote.
                parallel::fork(parts, |part| unsafe {
                    let own = &mut *counts.add(part * SETS + digit);
                    own.fill(0);
                    for index in range(part) {
                        own[digit_of(self.pair(from, index).key(), digit)] += 1;
                    }
                });
            }
            // SAFETY: between the forks this thread alone has the histograms.
            unsafe {
                starts_together(std::slice::from_raw_parts_mut(counts.0, parts * SETS), digit)
            };
            // SAFETY: the starts give every part places of its own.
            parallel::fork(parts, |part| unsafe {
                let next = &mut *counts.add(part * SETS + digit);
                self.pass(&passes, pass, range(part), next, plain);
            });
        }
        if passes.count == 0 {
            // SAFETY: parts copy disjoint ranges.
            parallel::fork(parts, |part| unsafe { self.copy(range(part)) });
        }
    }

    /// Counts every digit of a range, and in `own[SPECIAL][0]` the elements that are not plain.
    unsafe fn count_all(&self, range: std::ops::Range<usize>, own: &mut [[usize; PLACES]]) {
        own.fill([0; PLACES]);
        for index in range {
            // SAFETY: inside the row.
            let element = unsafe { self.element(index) };
            own[SPECIAL][0] += usize::from(!element.is_plain());
            let key = self.directed(element.key());
            for (digit, histogram) in own.iter_mut().enumerate().take(Self::DIGITS) {
                histogram[digit_of(key, digit)] += 1;
            }
        }
    }
}

/// Turns the parts' counts of one digit into the place where each part's elements with that digit
/// begin.
fn starts_together(sets: &mut [[usize; PLACES]], digit: usize) {
    let mut start = 0;
    for place in 0..PLACES {
        for set in sets.chunks_mut(SETS) {
            start += std::mem::replace(&mut set[digit][place], start);
        }
    }
}

#[inline(always)]
fn digit_of(key: u64, digit: usize) -> usize {
    (key >> (8 * digit) & 0xff) as usize
}

fn starts(histogram: &[u32; PLACES]) -> [u32; PLACES] {
    let mut start = 0;
    histogram.map(|count| {
        start += count;
        start - count
    })
}

/// The next free place of a digit.
pub(super) trait NextSlot: Copy {
    fn take(&mut self) -> usize;
}
impl NextSlot for u32 {
    #[inline(always)]
    fn take(&mut self) -> usize {
        *self += 1;
        (*self - 1) as usize
    }
}
impl NextSlot for usize {
    #[inline(always)]
    fn take(&mut self) -> usize {
        *self += 1;
        *self - 1
    }
}

/// The digits that differ somewhere, least significant first.
struct Passes {
    digits: [usize; MOST_DIGITS],
    count: usize,
}

impl Passes {
    fn of<T: SortKey>(is_same_everywhere: impl Fn(usize) -> bool) -> Passes {
        let mut passes = Passes { digits: [0; MOST_DIGITS], count: 0 };
        for digit in (0..(T::BITS / 8) as usize).filter(|&digit| !is_same_everywhere(digit)) {
            passes.digits[passes.count] = digit;
            passes.count += 1;
        }
        passes
    }

    /// Which buffer a pass that is not the last fills: alternating, so that the last reads the
    /// first one.
    fn buffer_after(&self, pass: usize) -> usize {
        (self.count - 2 - pass) % 2
    }
}
