//! The logarithm of the sum of exponentials along a dimension, in one sweep: each slice is summed
//! around its own largest element, and slices are joined. Lines that lie side by side are summed
//! down blocks of columns.

use plimsoll_core::{Layout, Result};
use plimsoll_engine::along_dim::{LANES, Lines, SLICE, fold, read_run, slices, sum};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::operands;
use plimsoll_engine::match_float;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Element, Meta, Operand, input_dtype, parallel};

/// Lines side by side in a block of columns.
const COLUMNS: usize = LANES;
/// The shortest part of a line that gets a thread of its own.
const PART: usize = 1 << 16;
/// Parts of a line at most.
const MOST_PARTS: usize = 64;

/// `[x]` -> log(sum(exp(x))) along `dim`, which has size 1 in the output.
pub fn logsumexp(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => run::<T>(launch, dim))
}

fn run<T: Float + Element>(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    // The output along the whole line, by a stride of 0.
    let stretched = stretched(&out, input.shape())?;
    // SAFETY: the same elements as the output's, some of them named more than once.
    let stretched_out = unsafe {
        Operand::new(out.first_byte().wrapping_sub(offset_bytes(&stretched)), &stretched)
    };
    let lines = Lines::new(launch, &[input, stretched_out], dim)?;
    if lines.count == 0 {
        return Ok(());
    }
    if lines.len == 0 {
        parallel::split(lines.count, GRAIN, |range| {
            // SAFETY: each line has its own element of the output.
            range.for_each(|line| unsafe {
                *lines.line(line)[1].cast::<T>() = T::from_f64(f64::NEG_INFINITY);
            });
        });
        return Ok(());
    }
    let (width, across) = lines.across();
    if lines.strides[0] != size_of::<T>() && lines.len > 1 && width > 1 {
        let blocks = width.div_ceil(COLUMNS);
        let units = lines.count / width * blocks;
        parallel::split(units, (GRAIN / (lines.len * COLUMNS)).max(1), |range| {
            for unit in range {
                let first = unit % blocks * COLUMNS;
                let [from, to] = lines.group(unit / blocks, first);
                simd::dispatch_level(Block::<T> {
                    from: from.cast(),
                    to: to.cast(),
                    across,
                    columns: COLUMNS.min(width - first),
                    down: lines.strides[0],
                    len: lines.len,
                });
            }
        });
        return Ok(());
    }
    let parts = if lines.count >= 16 { 1 } else { (lines.len / PART).clamp(1, MOST_PARTS) };
    let stride = lines.strides[0];
    let fold_part = |line: usize, part: usize| {
        let range = parallel::part_range(lines.len, parts, part);
        let from = lines.line(line)[0].wrapping_add(range.start * stride).cast::<T>();
        simd::dispatch_level(Part::<T> { from, stride, len: range.len() })
    };
    let store = |line: usize, total: Total| {
        // SAFETY: each line has its own element of the output.
        unsafe { *lines.line(line)[1].cast::<T>() = T::from_f64(total.value()) };
    };
    if parts == 1 {
        parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
            range.for_each(|line| store(line, fold_part(line, 0)));
        });
        return Ok(());
    }
    for line in 0..lines.count {
        let mut totals = [Total::EMPTY; MOST_PARTS];
        let shared = Shared(totals.as_mut_ptr());
        parallel::fork(parts, |part| {
            // SAFETY: parts are distinct and below MOST_PARTS; `totals` outlives the fork.
            unsafe { *shared.add(part) = fold_part(line, part) };
        });
        store(line, totals[..parts].iter().fold(Total::EMPTY, |a, &b| a.join(b)));
    }
    Ok(())
}

fn stretched(out: &Operand<'_>, shape: &[usize]) -> Result<Meta> {
    let layout: Layout = out.layout().broadcast_to(shape)?;
    Ok(Meta { layout, dtype: out.dtype() })
}

fn offset_bytes(meta: &Meta) -> usize {
    meta.layout.offset() * meta.dtype.size_bytes()
}

/// exp(top) times sum: a sum of exponentials that cannot overflow.
#[derive(Clone, Copy)]
struct Total {
    top: f64,
    sum: f64,
}

impl Total {
    const EMPTY: Total = Total { top: f64::NEG_INFINITY, sum: 0.0 };

    /// What is subtracted: an infinite top is left to the exponentials.
    fn shift(top: f64) -> f64 {
        if top.is_finite() { top } else { 0.0 }
    }

    fn join(self, other: Total) -> Total {
        let top = if other.top > self.top { other.top } else { self.top };
        let scaled = |part: Total| {
            if part.sum == 0.0 {
                return 0.0;
            }
            part.sum * (Total::shift(part.top) - Total::shift(top)).exp()
        };
        // Beside an infinite top finite sums do not matter, but a NaN does.
        if top == f64::INFINITY {
            let nan = self.sum.is_nan() || other.sum.is_nan();
            return Total { top, sum: if nan { f64::NAN } else { f64::INFINITY } };
        }
        Total { top, sum: scaled(self) + scaled(other) }
    }

    fn value(self) -> f64 {
        Total::shift(self.top) + self.sum.ln()
    }
}

#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    // A NaN is left for the exponentials to carry.
    if b > a { b } else { a }
}

/// A run of one line.
struct Part<T> {
    from: *const T,
    stride: usize,
    len: usize,
}

impl<T: Float> LevelKernel for Part<T> {
    type Output = Total;
    #[inline(always)]
    fn run<L: Level>(self) -> Total {
        let mut buffer = [T::Wide::ZERO; SLICE];
        let mut total = Total::EMPTY;
        slices(self.len, |at, count| {
            let values = &mut buffer[..count];
            // SAFETY: the slice is inside the run, which the caller cut from a line.
            unsafe {
                let from = self.from.byte_add(at * self.stride);
                read_run(from, self.stride, values);
            }
            let start = -T::Wide::INFINITY;
            // SAFETY: the buffer's own elements.
            let top = unsafe { fold(values.as_ptr(), count, start, larger, larger) };
            let shift = T::Wide::of(Total::shift(top.to_f64()));
            for value in values.iter_mut() {
                *value = (*value - shift).exp::<L>();
            }
            total = total.join(Total { top: top.to_f64(), sum: sum(values).to_f64() });
        });
        total
    }
}

/// Neighbouring lines.
struct Block<T> {
    from: *const T,
    to: *mut T,
    across: [usize; 2],
    columns: usize,
    down: usize,
    len: usize,
}

impl<T: Float + Element> LevelKernel for Block<T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Block { from, to, across, columns, down, len } = self;
        let zero = T::Wide::ZERO;
        let (mut run, mut tops) = ([zero; COLUMNS], [-T::Wide::INFINITY; COLUMNS]);
        let mut sums = [zero; COLUMNS];
        for row in 0..len {
            // SAFETY: the row is in the lines, and has `columns` elements from here on.
            unsafe { read_run(from.byte_add(row * down), across[0], &mut run[..columns]) };
            for (top, &value) in tops.iter_mut().zip(&run[..columns]) {
                *top = larger(*top, value);
            }
        }
        for top in &mut tops {
            *top = T::Wide::of(Total::shift(top.to_f64()));
        }
        for row in 0..len {
            // SAFETY: as above.
            unsafe { read_run(from.byte_add(row * down), across[0], &mut run[..columns]) };
            for ((sum, &value), &top) in sums.iter_mut().zip(&run[..columns]).zip(&tops) {
                *sum = *sum + (value - top).exp::<L>();
            }
        }
        for (j, (sum, top)) in sums[..columns].iter().zip(&tops).enumerate() {
            let value = top.to_f64() + sum.to_f64().ln();
            // SAFETY: each line has its own element of the output.
            unsafe { *to.byte_add(j * across[1]) = T::from_f64(value) };
        }
    }
}
