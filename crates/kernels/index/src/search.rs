//! Where numbers belong in sorted sequences, by halving; and how many fall into each bin.
//!
//! Operands are contiguous. Floats are compared as f64, integers as i64.

use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::number::Number;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Meta, Operand, match_dtype, parallel};

/// Searches that pay for waking one more thread.
const GRAIN: usize = 1 << 12;
/// Elements that pay for counts of their own.
const PART: usize = 1 << 16;
/// Counts of their own at most: by length alone, so that sums do not depend on threads.
const MOST_PARTS: usize = 8;

#[cold]
fn misfit(launch: &CpuLaunch<'_>) -> Error {
    Error::invalid_argument("the kernel needs contiguous operands that fit together")
        .in_operation(launch.operation)
}

/// Element `index` of a contiguous operand.
fn element<C: Number>(operand: &Operand<'_>, index: usize) -> C {
    match_dtype!(operand.dtype(), T => {
        // SAFETY: callers stay below the number of elements.
        C::from_number(unsafe { *operand.first::<T>().add(index) })
    })
}

/// `[sequences, values]` -> for each value the place (i64 or i32) before which it belongs: before
/// equal elements, or after them if `right`. One sequence serves all values; or each row of values
/// has its own.
pub fn searchsorted(launch: &CpuLaunch<'_>, right: bool) -> Result<()> {
    let ([sequences, values], [out]) = (launch.inputs, launch.outputs) else {
        return Err(misfit(launch));
    };
    let dense = [sequences, values, out].iter().all(|x| x.layout().is_contiguous());
    if !dense || !matches!(out.dtype(), DType::I64 | DType::I32) {
        return Err(misfit(launch));
    }
    if values.dtype().is_float() || sequences.dtype().is_float() {
        search::<f64>([sequences, values, out], right);
    } else {
        search::<i64>([sequences, values, out], right);
    }
    Ok(())
}

fn search<C: Number>([sequences, values, out]: [&Operand<'_>; 3], right: bool) {
    let len = sequences.shape().last().copied().unwrap_or(1);
    let shared = sequences.shape().len() <= 1;
    let row = if shared { usize::MAX } else { values.shape().last().copied().unwrap_or(1) };
    parallel::split(values.layout().numel(), GRAIN, |range| {
        for index in range {
            let value: C = element(values, index);
            let first = if shared { 0 } else { index / row * len };
            let (mut low, mut high) = (0, len);
            while low < high {
                let middle = low + (high - low) / 2;
                let there: C = element(sequences, first + middle);
                // A NaN belongs behind all; one in the sequence is gone past, as in PyTorch.
                let unordered = there.is_nan() || value.is_nan();
                let below = if right { !value.below(there) } else { there.below(value) };
                let goes_on = unordered || below;
                if goes_on { low = middle + 1 } else { high = middle }
            }
            // SAFETY: the output has a place for each value, of this dtype.
            unsafe {
                if out.dtype() == DType::I64 {
                    *out.first::<i64>().add(index) = low as i64;
                } else {
                    *out.first::<i32>().add(index) = low as i32;
                }
            }
        }
    });
}

/// How elements are put into bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bins {
    /// The element is the bin's number.
    Numbered,
    /// Bins of one width from `low` to `high`, which belongs to the last.
    Even {
        /// Where the first bin begins.
        low: f64,
        /// Where the last bin ends.
        high: f64,
    },
    /// Bins between the edges of input 1.
    Edges,
}

/// Parts of the elements, each with totals of its own: no more totals than elements.
fn parts(elements: usize, bins: usize) -> usize {
    (elements / PART).min(elements / bins.max(1)).clamp(1, MOST_PARTS)
}

/// Whether the totals of a single part are the result itself: as wide as they are added up.
fn is_direct(elements: usize, bins: usize, dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::I64) && parts(elements, bins) == 1
}

/// Scratch of [`histogram`], whose result is of that dtype.
pub fn histogram_workspace_bytes(input: &Meta, bins: usize, dtype: DType) -> usize {
    let elements = input.layout.numel();
    match is_direct(elements, bins, dtype) {
        true => 0,
        false => parts(elements, bins) * bins * size_of::<f64>(),
    }
}

/// `[x (, edges) (, weights)]` -> how many elements of x, or how much weight, each bin has.
pub fn histogram(launch: &CpuLaunch<'_>, bins: Bins, weighted: bool) -> Result<()> {
    let (Some(x), [out]) = (launch.inputs.first(), launch.outputs) else {
        return Err(misfit(launch));
    };
    let edges = if bins == Bins::Edges { launch.inputs.get(1) } else { None };
    let weights = if weighted { launch.inputs.last() } else { None };
    let mut all = [Some(x), edges, weights, Some(out)].into_iter().flatten();
    let count = out.layout().numel();
    let needed = histogram_workspace_bytes(x.meta(), count, out.dtype());
    if !all.all(|operand| operand.layout().is_contiguous()) || launch.workspace.bytes() < needed {
        return Err(misfit(launch));
    }
    let elements = x.layout().numel();
    if is_direct(elements, count, out.dtype()) {
        let each = |add: &mut dyn FnMut(usize, f64)| {
            for index in 0..elements {
                let Some(bin) = bin_of(x, index, bins, edges, count) else { continue };
                add(bin, weights.map_or(1.0, |weights| element(weights, index)));
            }
        };
        // SAFETY: the output has `count` elements of its dtype, and nobody else has it.
        unsafe {
            if out.dtype() == DType::F64 {
                let own = std::slice::from_raw_parts_mut(out.first::<f64>(), count);
                own.fill(0.0);
                each(&mut |bin, weight| own[bin] += weight);
            } else {
                let own = std::slice::from_raw_parts_mut(out.first::<i64>(), count);
                own.fill(0);
                each(&mut |bin, weight| own[bin] += weight as i64);
            }
        }
        return Ok(());
    }
    let parts = parts(elements, count);
    let totals = Shared(launch.workspace.pointer().cast::<f64>());
    parallel::fork(parts, |part| {
        // SAFETY: the workspace has `count` totals for each part.
        let own = unsafe { std::slice::from_raw_parts_mut(totals.add(part * count), count) };
        own.fill(0.0);
        for index in parallel::part_range(elements, parts, part) {
            let Some(bin) = bin_of(x, index, bins, edges, count) else { continue };
            own[bin] += weights.map_or(1.0, |weights| element(weights, index));
        }
    });
    for bin in 0..count {
        // SAFETY: as above; every part is done.
        let total: f64 = (0..parts).map(|part| unsafe { *totals.add(part * count + bin) }).sum();
        match_dtype!(out.dtype(), T => {
            // SAFETY: the output has `count` elements of this dtype.
            unsafe { *out.first::<T>().add(bin) = <T as Number>::from_number(total) }
        });
    }
    Ok(())
}

/// The bin of element `index`, if it has one.
fn bin_of(
    x: &Operand<'_>,
    index: usize,
    bins: Bins,
    edges: Option<&Operand<'_>>,
    count: usize,
) -> Option<usize> {
    match (bins, edges) {
        (Bins::Numbered, _) => usize::try_from(element::<i64>(x, index)).ok(),
        (Bins::Even { low, high }, _) => {
            let value: f64 = element(x, index);
            let inside = value >= low && value <= high;
            // In PyTorch's order, so that what lies on an edge falls to the same side.
            let place = ((value - low) * count as f64 / (high - low)) as usize;
            inside.then(|| place.min(count - 1))
        }
        (Bins::Edges, Some(edges)) => {
            let value: f64 = element(x, index);
            let edge = |i: usize| element::<f64>(edges, i);
            if !(value >= edge(0) && value <= edge(count)) {
                return None;
            }
            // The last edge belongs to the last bin.
            let (mut low, mut high) = (0, count);
            while low < high {
                let middle = low + (high - low) / 2;
                if edge(middle) <= value { low = middle + 1 } else { high = middle }
            }
            Some(low.clamp(1, count) - 1)
        }
        (Bins::Edges, None) => None,
    }
    .filter(|&bin| bin < count)
}
