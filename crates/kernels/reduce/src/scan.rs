//! Scans along a dimension: running sums, products, logarithms of sums of exponentials, extremes
//! with their places, and the linear recurrence that the derivatives of products are made of.
//!
//! Floats run in f64 and integers in i64, whatever the dtype: one body serves all. Long lines are
//! cut by length alone, so results do not depend on the number of threads.

use plimsoll_core::{Error, Result};
use plimsoll_engine::along_dim::Lines;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::number::Number;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, Operand, match_dtype, parallel};

/// Elements loaded at a time.
const CHUNK: usize = 256;
/// Lines side by side.
const COLUMNS: usize = 64;
/// The shortest part of a line that gets a thread of its own.
const PART: usize = 1 << 16;
/// Parts of a line at most.
const MOST_PARTS: usize = 256;

/// Which scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Running sums.
    Sum,
    /// Running products.
    Product,
    /// Running logarithms of sums of exponentials; floats only.
    LogSumExp,
}

/// What elements are computed in.
trait Wide: Number + Send + Sync {
    fn start(scan: Scan) -> Self;
    fn join(scan: Scan, a: Self, b: Self) -> Self;
}

impl Wide for f64 {
    #[inline(always)]
    fn start(scan: Scan) -> f64 {
        match scan {
            Scan::Sum => 0.0,
            Scan::Product => 1.0,
            Scan::LogSumExp => f64::NEG_INFINITY,
        }
    }
    #[inline(always)]
    fn join(scan: Scan, a: f64, b: f64) -> f64 {
        match scan {
            Scan::Sum => a + b,
            Scan::Product => a * b,
            Scan::LogSumExp => log_add_exp(a, b),
        }
    }
}

impl Wide for i64 {
    #[inline(always)]
    fn start(scan: Scan) -> i64 {
        i64::from(scan == Scan::Product)
    }
    #[inline(always)]
    fn join(scan: Scan, a: i64, b: i64) -> i64 {
        if scan == Scan::Product { a.wrapping_mul(b) } else { a.wrapping_add(b) }
    }
}

fn log_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low.is_nan() || high.is_nan() {
        return f64::NAN;
    }
    // Equal infinities have no difference.
    if low == high && low.is_infinite() { low } else { high + (low - high).exp().ln_1p() }
}

/// `[x]` -> the scan of x along `dim`, from the end if `reverse`.
pub fn scan(launch: &CpuLaunch<'_>, scan: Scan, dim: usize, reverse: bool) -> Result<()> {
    let [input, out] = [input(launch, 0)?, output(launch, 0)?];
    let lines = Lines::new(launch, &[input, out], dim)?;
    if input.dtype().is_float() {
        run::<f64>(&lines, [input, out], scan, reverse);
    } else {
        run::<i64>(&lines, [input, out], scan, reverse);
    }
    Ok(())
}

fn run<C: Wide>(lines: &Lines<2>, [input, out]: [Operand<'_>; 2], scan: Scan, reverse: bool) {
    if lines.count == 0 || lines.len == 0 {
        return;
    }
    let job = Job { lines, from: Run::of(&input), to: Run::of(&out), scan, reverse };
    let (width, across) = lines.across();
    if width > 1 && across[1] < lines.strides[1] {
        let blocks = width.div_ceil(COLUMNS);
        let units = lines.count / width * blocks;
        parallel::split(units, (GRAIN / (lines.len * COLUMNS)).max(1), |range| {
            range.for_each(|unit| job.columns::<C>(unit / blocks, unit % blocks * COLUMNS));
        });
        return;
    }
    let parts = if lines.count >= 16 { 1 } else { (lines.len / PART).clamp(1, MOST_PARTS) };
    if parts == 1 {
        parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
            for line in range {
                job.part(line, 0..lines.len, C::start(scan), true);
            }
        });
        return;
    }
    for line in 0..lines.count {
        let mut carries = [C::start(scan); MOST_PARTS + 1];
        let shared = Shared(carries.as_mut_ptr());
        parallel::fork(parts, |part| {
            let range = parallel::part_range(lines.len, parts, part);
            let total = job.part(line, range, C::start(scan), false);
            // SAFETY: parts are distinct and below MOST_PARTS; `carries` outlives the fork.
            unsafe { *shared.add(part + 1) = total };
        });
        for part in 1..parts {
            carries[part] = C::join(scan, carries[part - 1], carries[part]);
        }
        parallel::fork(parts, |part| {
            let range = parallel::part_range(lines.len, parts, part);
            job.part(line, range, carries[part], true);
        });
    }
}

/// Elements of one operand's dtype.
#[derive(Clone, Copy)]
struct Run {
    dtype: plimsoll_core::DType,
}

impl Run {
    fn of(operand: &Operand<'_>) -> Run {
        Run { dtype: operand.dtype() }
    }

    /// Reads elements `stride` bytes apart, which may go backwards.
    ///
    /// # Safety
    /// As many elements as there are values must be readable.
    unsafe fn load<C: Number>(self, from: *const u8, stride: isize, values: &mut [C]) {
        match_dtype!(self.dtype, T => {
            if stride == size_of::<T>() as isize {
                for (i, value) in values.iter_mut().enumerate() {
                    // SAFETY: the caller's promise.
                    *value = C::from_number(unsafe { *from.cast::<T>().add(i) });
                }
            } else {
                for (i, value) in values.iter_mut().enumerate() {
                    // SAFETY: the caller's promise.
                    let element = unsafe { *from.offset(i as isize * stride).cast::<T>() };
                    *value = C::from_number(element);
                }
            }
        })
    }

    /// Writes elements `stride` bytes apart, which may go backwards.
    ///
    /// # Safety
    /// As many elements as there are values must be writable.
    unsafe fn store<C: Number>(self, to: *mut u8, stride: isize, values: &[C]) {
        match_dtype!(self.dtype, T => {
            if stride == size_of::<T>() as isize {
                for (i, &value) in values.iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe { *to.cast::<T>().add(i) = <T as Number>::from_number(value) };
                }
            } else {
                for (i, &value) in values.iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe {
                        *to.offset(i as isize * stride).cast::<T>() =
                            <T as Number>::from_number(value);
                    }
                }
            }
        })
    }
}

struct Job<'a> {
    lines: &'a Lines<2>,
    from: Run,
    to: Run,
    scan: Scan,
    reverse: bool,
}

impl Job<'_> {
    /// Scans the elements `range` of a line, counted in the direction of the scan, from `carry`;
    /// writes the results if `writes`, and gives the last.
    fn part<C: Wide>(
        &self,
        line: usize,
        range: std::ops::Range<usize>,
        mut carry: C,
        writes: bool,
    ) -> C {
        let [from, to] = self.lines.line(line);
        let len = self.lines.len;
        let place = |pointer: *mut u8, stride: usize, at: usize| {
            let at = if self.reverse { len - 1 - at } else { at };
            pointer.wrapping_add(at * stride)
        };
        let sign = if self.reverse { -1 } else { 1 };
        let strides = self.lines.strides.map(|stride| stride as isize * sign);
        let mut values = [C::ZERO; CHUNK];
        let mut at = range.start;
        while at < range.end {
            let count = CHUNK.min(range.end - at);
            let values = &mut values[..count];
            // SAFETY: `at..at + count` are elements of the line.
            unsafe { self.from.load(place(from, self.lines.strides[0], at), strides[0], values) };
            carry = scan_chunk(self.scan, carry, values);
            if writes {
                // SAFETY: as above; the claim lets the launch write its output.
                unsafe { self.to.store(place(to, self.lines.strides[1], at), strides[1], values) };
            }
            at += count;
        }
        carry
    }

    /// Scans up to [`COLUMNS`] neighbouring lines of `group` from `first`, row by row.
    fn columns<C: Wide>(&self, group: usize, first: usize) {
        let (width, across) = self.lines.across();
        let columns = COLUMNS.min(width - first);
        let [from, to] = self.lines.group(group, first);
        let (mut carries, mut values) = ([C::start(self.scan); COLUMNS], [C::ZERO; COLUMNS]);
        for step in 0..self.lines.len {
            let row = if self.reverse { self.lines.len - 1 - step } else { step };
            let at = |pointer: *mut u8, i: usize| pointer.wrapping_add(row * self.lines.strides[i]);
            // SAFETY: the row is in the lines, and has `columns` elements from here on.
            unsafe { self.from.load(at(from, 0), across[0] as isize, &mut values[..columns]) };
            for (carry, &value) in carries.iter_mut().zip(&values[..columns]) {
                *carry = C::join(self.scan, *carry, value);
            }
            // SAFETY: as above; the claim lets the launch write its output.
            unsafe { self.to.store(at(to, 1), across[1] as isize, &carries[..columns]) };
        }
    }
}

/// Scans a chunk in place; gives the last. Sums go four at a time, so that one addition in four
/// waits for the one before.
#[inline]
fn scan_chunk<C: Wide>(scan: Scan, mut carry: C, values: &mut [C]) -> C {
    let mut fours = values.chunks_exact_mut(4);
    if scan != Scan::LogSumExp {
        for four in &mut fours {
            let [a, b, c, d] = [four[0], four[1], four[2], four[3]];
            let (ab, cd) = (C::join(scan, a, b), C::join(scan, c, d));
            let abc = C::join(scan, ab, c);
            four[0] = C::join(scan, carry, a);
            four[1] = C::join(scan, carry, ab);
            four[2] = C::join(scan, carry, abc);
            carry = C::join(scan, carry, C::join(scan, ab, cd));
            four[3] = carry;
        }
        for value in fours.into_remainder() {
            carry = C::join(scan, carry, *value);
            *value = carry;
        }
        return carry;
    }
    for value in values {
        carry = C::join(scan, carry, *value);
        *value = carry;
    }
    carry
}

/// `[x]` -> [the largest (or smallest) so far along `dim`, where it is]. Among equals the last, and
/// a NaN stays.
pub fn cumulative_extreme(launch: &CpuLaunch<'_>, dim: usize, max: bool) -> Result<()> {
    let all = [input(launch, 0)?, output(launch, 0)?, output(launch, 1)?];
    let lines = Lines::new(launch, &all, dim)?;
    match_dtype!(all[0].dtype(), T => extremes::<T>(&lines, max));
    Ok(())
}

fn extremes<T: Number + Element>(lines: &Lines<3>, max: bool) {
    if lines.count == 0 || lines.len == 0 {
        return;
    }
    parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
        for line in range {
            let [from, values, places] = lines.line(line);
            let at = |pointer: *mut u8, i: usize, operand: usize| {
                pointer.wrapping_add(i * lines.strides[operand])
            };
            // SAFETY: the line's first element.
            let mut best = (unsafe { *from.cast::<T>() }, 0);
            for i in 0..lines.len {
                // SAFETY: an element of the line.
                let value = unsafe { *at(from, i, 0).cast::<T>() };
                let (new, old) = (value.up(), best.0.up());
                let below = if max { new.below(old) } else { old.below(new) };
                if new.is_nan() || (!old.is_nan() && !below) {
                    best = (value, i);
                }
                // SAFETY: as above; the claim lets the launch write its outputs.
                unsafe {
                    *at(values, i, 1).cast::<T>() = best.0;
                    *at(places, i, 2).cast::<i64>() = best.1 as i64;
                }
            }
        }
    });
}

/// `[g, a]` -> along `dim`, T(k) = g(k) + a(k - 1) T(k - 1); from the end S(k) = g(k) + a(k) S(k +
/// 1). The last a is not read. Floats only.
pub fn recurrence(launch: &CpuLaunch<'_>, dim: usize, reverse: bool) -> Result<()> {
    let all = [input(launch, 0)?, input(launch, 1)?, output(launch, 0)?];
    let lines = Lines::new(launch, &all, dim)?;
    let runs = all.map(|operand| Run::of(&operand));
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
        for line in range {
            let pointers = lines.line(line);
            let at = |i: usize, k: usize| pointers[i].wrapping_add(k * lines.strides[i]);
            let mut state = 0.0f64;
            for step in 0..lines.len {
                let k = if reverse { lines.len - 1 - step } else { step };
                let factor = if reverse { k } else { k.wrapping_sub(1) };
                let (mut g, mut a) = ([0.0f64], [0.0f64]);
                // SAFETY: elements of the lines; the factor before the first step is not read.
                unsafe {
                    runs[0].load(at(0, k), 0, &mut g);
                    if step > 0 {
                        runs[1].load(at(1, factor), 0, &mut a);
                    }
                    state = if step > 0 { g[0] + a[0] * state } else { g[0] };
                    runs[2].store(at(2, k), 0, &[state]);
                }
            }
        }
    });
    Ok(())
}

fn input<'a>(launch: &CpuLaunch<'a>, index: usize) -> Result<Operand<'a>> {
    launch.inputs.get(index).copied().ok_or_else(|| missing(launch, "input"))
}

fn output<'a>(launch: &CpuLaunch<'a>, index: usize) -> Result<Operand<'a>> {
    launch.outputs.get(index).copied().ok_or_else(|| missing(launch, "output"))
}

#[cold]
fn missing(launch: &CpuLaunch<'_>, what: &str) -> Error {
    Error::invalid_argument(format!("the kernel was launched with an {what} missing"))
        .in_operation(launch.operation)
}
