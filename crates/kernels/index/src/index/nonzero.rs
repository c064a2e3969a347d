//! Where a tensor is not zero: first how many places, which sizes the output, then the places
//! themselves in row-major order.

use plimsoll_core::{Error, Result};

use plimsoll_engine::generate::{CHUNK, load};
use plimsoll_engine::input_dtype;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::check;
use plimsoll_engine::match_dtype;
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::{CpuLaunch, Operand};

/// Parts that a large tensor is cut into at most, by size alone.
const MOST_PARTS: usize = 64;

fn parts(numel: usize) -> usize {
    (numel / GRAIN).clamp(1, MOST_PARTS)
}

/// `[x]` -> how many elements are not zero.
pub fn nonzero_count(launch: &CpuLaunch<'_>) -> Result<usize> {
    let dtype = input_dtype(launch)?;
    let input = launch.inputs[0];
    match_dtype!(dtype, T => Ok(counts::<T>(input).iter().sum()))
}

/// Nonzero elements in each part.
fn counts<T: Number>(input: Operand<'_>) -> [usize; MOST_PARTS] {
    let numel = input.layout().numel();
    let parts = parts(numel);
    let counts = [const { std::sync::atomic::AtomicUsize::new(0) }; MOST_PARTS];
    parallel::fork(parts, |part| {
        let mut count = 0;
        each_nonzero::<T>(input, parallel::part_range(numel, parts, part), |_| count += 1);
        counts[part].store(count, std::sync::atomic::Ordering::Relaxed);
    });
    counts.map(std::sync::atomic::AtomicUsize::into_inner)
}

/// Calls `found` with the logical index of every nonzero element in `range`.
fn each_nonzero<T: Number>(
    input: Operand<'_>,
    range: std::ops::Range<usize>,
    mut found: impl FnMut(usize),
) {
    let mut values = [T::ZERO; CHUNK];
    let mut start = range.start;
    while start < range.end {
        let values = &mut values[..CHUNK.min(range.end - start)];
        // SAFETY: the range is inside the input's logical indices.
        unsafe { load(input, start, values) };
        for (i, value) in values.iter().enumerate() {
            if value.is_nonzero() {
                found(start + i);
            }
        }
        start += values.len();
    }
}

/// `[x]` -> the indices of its nonzero elements, i64 of shape [count, rank].
pub fn nonzero(launch: &CpuLaunch<'_>) -> Result<()> {
    let dtype = input_dtype(launch)?;
    let (input, Some(out)) = (launch.inputs[0], launch.outputs.first()) else {
        return Err(
            Error::invalid_argument("the kernel needs an output").in_operation(launch.operation)
        );
    };
    check::<i64>(launch, out)?;
    match_dtype!(dtype, T => write::<T>(launch, input, *out))
}

fn write<T: Number>(launch: &CpuLaunch<'_>, input: Operand<'_>, out: Operand<'_>) -> Result<()> {
    let counts = counts::<T>(input);
    let total: usize = counts.iter().sum();
    if out.shape() != [total, input.shape().len()] {
        return Err(Error::shape(
            launch.operation,
            format!("{total} nonzero elements do not fit an output of shape {:?}", out.shape()),
        ));
    }
    let numel = input.layout().numel();
    let parts = parts(numel);
    parallel::fork(parts, |part| {
        let mut row = counts[..part].iter().sum::<usize>();
        let range = parallel::part_range(numel, parts, part);
        each_nonzero::<T>(input, range, |index| {
            let strides = out.layout().strides();
            let mut rest = index;
            for (d, &size) in input.shape().iter().enumerate().rev() {
                let at = row * strides[0] + d * strides[1];
                // SAFETY: the output has a row for each nonzero element and a column for each
                // dimension, as just checked; each part writes its own rows.
                unsafe { *out.first::<i64>().add(at) = (rest % size) as i64 };
                rest /= size;
            }
            row += 1;
        });
    });
    Ok(())
}
