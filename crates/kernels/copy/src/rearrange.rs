//! Moving whole dimensions about: turned around, rolled, repeated, padded. Every dimension of the
//! output says by itself which index of the input stands at each of its own, so all of these are
//! one loop; the derivative, which adds up what was read several times, is another.

use plimsoll_core::{Error, Result, Scalar};
use smallvec::SmallVec;

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::operands;
use plimsoll_engine::{CpuLaunch, Element, Meta, Operand, match_dtype, parallel};

/// Which index of the input stands at index `i` of the output, along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// `i - before`; outside the input stands a constant.
    Pad(i64),
    /// Counted from the end.
    Flip,
    /// `i - before`, around and around.
    Wrap(i64),
    /// `i / times`: each several times in a row.
    Each(usize),
    /// `i - before`, mirrored at the first and the last element, which stand once.
    Reflect(i64),
    /// `i - before`, or the nearest there is.
    Clamp(i64),
}

impl Along {
    /// The input's index at `i`, if there is one; `size` is the input's size.
    pub fn source(self, i: usize, size: usize) -> Option<usize> {
        if size == 0 {
            return None;
        }
        let (i, n) = (i as i64, size as i64);
        let at = match self {
            Along::Pad(before) => i - before,
            Along::Flip => n - 1 - i,
            Along::Wrap(before) => (i - before).rem_euclid(n),
            Along::Each(times) => i / times.max(1) as i64,
            Along::Reflect(before) => {
                let at = (i - before).abs();
                if at >= n { 2 * (n - 1) - at } else { at }
            }
            Along::Clamp(before) => (i - before).clamp(0, n - 1),
        };
        (0..n).contains(&at).then_some(at as usize)
    }

    /// What undoes it where every index of the input stands at most once; `None` where some may
    /// stand more often.
    pub fn inverse(self, size: usize, output: usize) -> Option<Along> {
        match self {
            Along::Pad(before) => Some(Along::Pad(-before)),
            Along::Flip => Some(Along::Flip),
            Along::Wrap(before) if size == output => Some(Along::Wrap(-before)),
            _ => None,
        }
    }
}

/// The sources of a dimension that the output runs along: neighbours of the output that read
/// neighbours of the input, or nothing.
struct Run {
    at: usize,
    len: usize,
    source: Option<usize>,
}

fn runs(along: Along, size: usize, output: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for i in 0..output {
        let source = along.source(i, size);
        match runs.last_mut() {
            Some(last) if source == last.source.map(|first| first + last.len) => last.len += 1,
            _ => runs.push(Run { at: i, len: 1, source }),
        }
    }
    runs
}

/// `[x]` -> x with every dimension read as `along` says, `value` where there is nothing to read.
pub fn rearrange(launch: &CpuLaunch<'_>, along: &[Along], value: Scalar) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    let rank = out.shape().len();
    if along.len() != rank || input.shape().len() != rank || out.dtype() != input.dtype() {
        return Err(Error::shape(
            launch.operation,
            format!("{along:?} does not lead from {:?} to {:?}", input.shape(), out.shape()),
        ));
    }
    if out.layout().numel() == 0 {
        return Ok(());
    }
    // Runs go along the last dimension: it is the one whose elements lie nearest in the output.
    let mut order: SmallVec<[i64; 6]> = (0..rank as i64).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(out.layout().strides()[d as usize]));
    let turned = |operand: &Operand<'_>| -> Result<Meta> {
        Ok(Meta { layout: operand.layout().permute(&order)?, dtype: operand.dtype() })
    };
    let (to, from) = (turned(&out)?, turned(&input)?);
    // SAFETY: the same elements with their dimensions in another order.
    let (out, input) =
        unsafe { (Operand::new(out.storage(), &to), Operand::new(input.storage(), &from)) };
    let along: SmallVec<[Along; 6]> = order.iter().map(|&d| along[d as usize]).collect();
    match_dtype!(out.dtype(), T => rearrange_as::<T>(&out, &input, &along, T::from_scalar(value)));
    Ok(())
}

fn rearrange_as<T: Element>(out: &Operand<'_>, input: &Operand<'_>, along: &[Along], value: T) {
    let rank = out.shape().len();
    let (outer, inner) = (rank.saturating_sub(1), *out.shape().last().unwrap_or(&1));
    let tables: Vec<Vec<Option<usize>>> = (0..outer)
        .map(|d| (0..out.shape()[d]).map(|i| along[d].source(i, input.shape()[d])).collect())
        .collect();
    let whole = Run { at: 0, len: 1, source: Some(0) };
    let last = match rank {
        0 => vec![whole],
        _ => runs(along[outer], input.shape()[outer], inner),
    };
    let step = |operand: &Operand<'_>| operand.layout().strides().last().copied().unwrap_or(1);
    let (to_step, from_step) = (step(out), step(input));
    let rows = out.layout().numel() / inner;
    parallel::split(rows, (GRAIN / inner).max(1), |rows| {
        let (to, from) = (out.first::<T>(), input.first::<T>());
        for row in rows {
            let (mut rest, mut target, mut source) = (row, 0, Some(0));
            for d in (0..outer).rev() {
                let at = rest % out.shape()[d];
                rest /= out.shape()[d];
                target += at * out.layout().strides()[d];
                let moved = tables[d][at].map(|from| from * input.layout().strides()[d]);
                source = source.zip(moved).map(|(a, b)| a + b);
            }
            for run in &last {
                let first = source.zip(run.source).map(|(row, at)| row + at * from_step);
                // SAFETY: `target` and the run's places are indices of the output's shape; `first`
                // and those after it are indices of the input's, which `Along::source` keeps to.
                unsafe {
                    let to = to.add(target + run.at * to_step);
                    match first {
                        None => (0..run.len).for_each(|i| *to.add(i * to_step) = value),
                        Some(first) if to_step == 1 && from_step == 1 => {
                            to.copy_from_nonoverlapping(from.add(first), run.len);
                        }
                        Some(first) => {
                            for i in 0..run.len {
                                *to.add(i * to_step) = *from.add(first + i * from_step);
                            }
                        }
                    }
                }
            }
        }
    });
}

type Places = SmallVec<[usize; 4]>;

/// The derivative of [`rearrange`]: `[grad]` -> for each element of the input, the sum over the
/// places where it stood. Each output element is added up by one thread in one order.
pub fn unrearrange(launch: &CpuLaunch<'_>, along: &[Along]) -> Result<()> {
    let [out, grad] = operands::<2>(launch)?;
    let rank = out.shape().len();
    if along.len() != rank || grad.shape().len() != rank || out.dtype() != grad.dtype() {
        return Err(Error::shape(
            launch.operation,
            format!("{along:?} does not lead from {:?} to {:?}", out.shape(), grad.shape()),
        ));
    }
    // For each dimension and index of the input, where in the gradient it stood.
    let places: Vec<Vec<Places>> = (0..rank)
        .map(|d| {
            let mut found = vec![Places::new(); out.shape()[d]];
            for i in 0..grad.shape()[d] {
                if let Some(source) = along[d].source(i, out.shape()[d]) {
                    found[source].push(i * grad.layout().strides()[d]);
                }
            }
            found
        })
        .collect();
    match_dtype!(out.dtype(), T => unrearrange_as::<T>(&out, &grad, &places));
    Ok(())
}

fn unrearrange_as<T: Element>(out: &Operand<'_>, grad: &Operand<'_>, places: &[Vec<Places>]) {
    parallel::split(out.layout().numel(), GRAIN / 4, |elements| {
        let (to, from) = (out.first::<T>(), grad.first::<T>());
        let mut stood: SmallVec<[&Places; 6]> = SmallVec::new();
        for element in elements {
            let (mut rest, mut target) = (element, 0);
            stood.clear();
            for d in (0..places.len()).rev() {
                let at = rest % out.shape()[d];
                rest /= out.shape()[d];
                target += at * out.layout().strides()[d];
                stood.push(&places[d][at]);
            }
            // SAFETY: the places are indices of the gradient's shape in each dimension, and
            // `target` is one of the output's, which only this thread writes.
            unsafe { *to.add(target) = T::from_f64(sum_at(from, &stood, 0)) };
        }
    });
}

/// The sum over every combination of places, from `offset` on.
///
/// # Safety
/// Every combination must be an element from `from` on.
unsafe fn sum_at<T: Element>(from: *const T, stood: &[&Places], offset: usize) -> f64 {
    // SAFETY: as the caller promises.
    unsafe {
        match stood.split_last() {
            None => (*from.add(offset)).to_f64(),
            Some((last, rest)) => {
                last.iter().map(|place| sum_at(from, rest, offset + place)).sum::<f64>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{Held, Lot, launch_all};

    const WAYS: [Along; 8] = [
        Along::Pad(2),
        Along::Pad(-1),
        Along::Flip,
        Along::Wrap(1),
        Along::Wrap(-5),
        Along::Each(2),
        Along::Reflect(2),
        Along::Clamp(3),
    ];

    #[test]
    fn sources_of_each_way() {
        let read = |along: Along, output: usize| -> Vec<Option<usize>> {
            (0..output).map(|i| along.source(i, 3)).collect()
        };
        let all = |list: &[usize]| list.iter().map(|&i| Some(i)).collect::<Vec<_>>();
        assert_eq!(read(Along::Flip, 3), all(&[2, 1, 0]));
        assert_eq!(read(Along::Wrap(1), 7), all(&[2, 0, 1, 2, 0, 1, 2]));
        assert_eq!(read(Along::Each(2), 6), all(&[0, 0, 1, 1, 2, 2]));
        assert_eq!(read(Along::Reflect(2), 7), all(&[2, 1, 0, 1, 2, 1, 0]));
        assert_eq!(read(Along::Clamp(1), 5), all(&[0, 0, 1, 2, 2]));
        assert_eq!(read(Along::Pad(1), 5), [None, Some(0), Some(1), Some(2), None]);
        assert_eq!(Along::Flip.source(0, 0), None);
    }

    fn output(along: Along, size: usize) -> usize {
        match along {
            Along::Flip => size,
            Along::Each(times) => size * times,
            Along::Reflect(_) => size + 3,
            _ => size + 2,
        }
    }

    #[test]
    fn every_way_in_every_layout_and_back() {
        let mut lot = Lot(9);
        for dtype in [DType::U8, DType::F16, DType::F32, DType::F64] {
            for first in WAYS {
                for second in WAYS {
                    let (rows, columns) = (3 + lot.below(3), 3 + lot.below(40));
                    let shape = [output(first, rows), output(second, columns)];
                    let x = Held::random(&mut lot, dtype, &[rows, columns], false);
                    let values = x.values();
                    let at =
                        |i: usize, j: usize| first.source(i, rows).zip(second.source(j, columns));
                    let want: Vec<f64> = (0..shape[0] * shape[1])
                        .map(|k| at(k / shape[1], k % shape[1]))
                        .map(|at| at.map_or(7.0, |(i, j)| values[i * columns + j]))
                        .collect();
                    let mut out = [Held::output(&mut lot, dtype, &shape)];
                    let along = [first, second];
                    let run = |l: &CpuLaunch<'_>| rearrange(l, &along, Scalar::Int(7));
                    launch_all(&[&x], &mut out, 0, run, |out| assert_eq!(out[0].values(), want));
                    if dtype != DType::F64 {
                        continue;
                    }
                    let grad = Held::random(&mut lot, dtype, &shape, false);
                    let mut sums = vec![0.0; rows * columns];
                    for (k, value) in grad.values().into_iter().enumerate() {
                        if let Some((i, j)) = at(k / shape[1], k % shape[1]) {
                            sums[i * columns + j] += value;
                        }
                    }
                    let mut out = [Held::output(&mut lot, dtype, &[rows, columns])];
                    launch_all(
                        &[&grad],
                        &mut out,
                        0,
                        |l| unrearrange(l, &along),
                        |out| {
                            for (have, want) in out[0].values().iter().zip(&sums) {
                                assert!((have - want).abs() < 1e-9, "{along:?}: {have} {want}");
                            }
                        },
                    );
                }
            }
        }
    }
}
