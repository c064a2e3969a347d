//! Runs of equal elements: of rows of a matrix (what distinct elements are made of), and the
//! longest one of each sorted line (the mode). And the order of rows, compared element by element.

use plimsoll_core::{Error, Result};
use plimsoll_engine::along_dim::Lines;
use plimsoll_engine::map::check;
use plimsoll_engine::number::Number;
use plimsoll_engine::{CpuLaunch, Element, Meta, Operand, match_dtype, parallel};

/// Lines that pay for waking one more thread.
const GRAIN: usize = 1 << 14;

/// A contiguous matrix.
struct Rows<T> {
    first: *const T,
    count: usize,
    width: usize,
}

// SAFETY: an address and sizes; only read, under the launch's claim.
unsafe impl<T> Sync for Rows<T> {}

impl<T: Number> Rows<T> {
    fn row(&self, index: usize) -> &[T] {
        // SAFETY: `of` checked that the matrix is contiguous, and `index` is below `count`.
        unsafe { std::slice::from_raw_parts(self.first.add(index * self.width), self.width) }
    }

    fn of(launch: &CpuLaunch<'_>) -> Result<Rows<T>>
    where
        T: Element,
    {
        let Some(input) = launch.inputs.first() else { return Err(misfit(launch)) };
        let [count, width] = *input.shape() else { return Err(misfit(launch)) };
        if !input.layout().is_contiguous() {
            return Err(misfit(launch));
        }
        Ok(Rows { first: input.first::<T>(), count, width })
    }

    /// Whether row `index` is another than the one before.
    fn starts(&self, index: usize) -> bool {
        index == 0 || self.row(index - 1).iter().zip(self.row(index)).any(|(a, b)| !a.equals(*b))
    }
}

#[cold]
fn misfit(launch: &CpuLaunch<'_>) -> Error {
    Error::invalid_argument("the kernel needs a contiguous matrix, and outputs for its runs")
        .in_operation(launch.operation)
}

/// How many runs of equal rows the contiguous matrix has.
pub fn count_runs(launch: &CpuLaunch<'_>) -> Result<usize> {
    let Some(input) = launch.inputs.first() else { return Err(misfit(launch)) };
    match_dtype!(input.dtype(), T => {
        let rows = Rows::<T>::of(launch)?;
        let found = std::sync::atomic::AtomicUsize::new(0);
        parallel::split(rows.count, GRAIN, |range| {
            let count = range.filter(|&index| rows.starts(index)).count();
            found.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        });
        Ok(found.into_inner())
    })
}

/// `[matrix]` -> [the first row of each run, the run of every row (i64), the runs' lengths (i64)],
/// contiguous; those that have no elements are not written.
pub fn runs(launch: &CpuLaunch<'_>) -> Result<()> {
    let [first, ids, lengths] = launch.outputs else { return Err(misfit(launch)) };
    check::<i64>(launch, ids)?;
    check::<i64>(launch, lengths)?;
    match_dtype!(launch.inputs.first().ok_or_else(|| misfit(launch))?.dtype(), T => {
        let rows = Rows::<T>::of(launch)?;
        let (wants_ids, wants_lengths) =
            (ids.layout().numel() > 0, lengths.layout().numel() > 0);
        let (to, ids, lengths) = (first.first::<T>(), ids.first::<i64>(), lengths.first::<i64>());
        let (mut run, mut begun) = (0usize, 0);
        for index in 0..rows.count {
            if rows.starts(index) {
                // SAFETY: the outputs have a place for each run, as `count_runs` said.
                unsafe {
                    if run > 0 && wants_lengths {
                        *lengths.add(run - 1) = (index - begun) as i64;
                    }
                    let target = to.add(run * rows.width);
                    for (j, &value) in rows.row(index).iter().enumerate() {
                        *target.add(j) = value;
                    }
                }
                run += 1;
                begun = index;
            }
            if wants_ids {
                // SAFETY: `ids` has a place for each row.
                unsafe { *ids.add(index) = run as i64 - 1 };
            }
        }
        if run > 0 && wants_lengths {
            // SAFETY: as above.
            unsafe { *lengths.add(run - 1) = (rows.count - begun) as i64 };
        }
    });
    Ok(())
}

/// `[matrix]` -> the rows' positions (i64) in the order of their elements, equal rows as they
/// stand.
pub fn row_order(launch: &CpuLaunch<'_>) -> Result<()> {
    let [out] = launch.outputs else { return Err(misfit(launch)) };
    check::<i64>(launch, out)?;
    match_dtype!(launch.inputs.first().ok_or_else(|| misfit(launch))?.dtype(), T => {
        let rows = Rows::<T>::of(launch)?;
        // SAFETY: a contiguous output with a place for each row.
        let order = unsafe { std::slice::from_raw_parts_mut(out.first::<i64>(), rows.count) };
        for (index, place) in order.iter_mut().enumerate() {
            *place = index as i64;
        }
        order.sort_unstable_by(|&a, &b| {
            let pairs = rows.row(a as usize).iter().zip(rows.row(b as usize));
            for (x, y) in pairs {
                if x.below(*y) {
                    return std::cmp::Ordering::Less;
                }
                if y.below(*x) {
                    return std::cmp::Ordering::Greater;
                }
            }
            a.cmp(&b)
        });
    });
    Ok(())
}

/// `[sorted along dim, their positions]` -> [the element that each line has most often (the least
/// of several), the position of the last of them]; both of size 1 along `dim`.
pub fn mode(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    let ([sorted, places], [values, positions]) = (launch.inputs, launch.outputs) else {
        return Err(misfit(launch));
    };
    check::<i64>(launch, places)?;
    check::<i64>(launch, positions)?;
    let stretch = |operand: &Operand<'_>| -> Result<Meta> {
        let layout = operand.layout().broadcast_to(sorted.shape())?.at_start();
        Ok(Meta { layout, dtype: operand.dtype() })
    };
    let metas = [stretch(values)?, stretch(positions)?];
    // SAFETY: the same elements as the outputs', some of them named more than once.
    let outputs = [(values, &metas[0]), (positions, &metas[1])]
        .map(|(operand, meta)| unsafe { Operand::new(operand.first_byte(), meta) });
    let lines = Lines::new(launch, &[*sorted, *places, outputs[0], outputs[1]], dim)?;
    if lines.len == 0 {
        return Ok(());
    }
    match_dtype!(sorted.dtype(), T => modes::<T>(&lines));
    Ok(())
}

fn modes<T: Number + Element>(lines: &Lines<4>) {
    parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
        for line in range {
            let [sorted, places, value, position] = lines.line(line);
            // SAFETY: an element of the line.
            let at = |i: usize| unsafe { *sorted.wrapping_add(i * lines.strides[0]).cast::<T>() };
            let same = |a: T, b: T| a.equals(b) || (a.is_nan() && b.is_nan());
            let (mut best, mut longest, mut begun) = (0, 0, 0);
            for i in 0..lines.len {
                if !same(at(i), at(begun)) {
                    begun = i;
                }
                if i + 1 - begun > longest {
                    longest = i + 1 - begun;
                    best = i;
                }
            }
            // SAFETY: elements of the line; each line has its own element of the outputs.
            unsafe {
                *value.cast::<T>() = at(best);
                *position.cast::<i64>() =
                    *places.wrapping_add(best * lines.strides[1]).cast::<i64>();
            }
        }
    });
}
