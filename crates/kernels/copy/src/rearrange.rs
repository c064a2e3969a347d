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

/// Neighbours of the output that read the input in steps, or nothing of it.
struct Run {
    at: usize,
    len: usize,
    source: Option<usize>,
    /// From one source to the next: 1, 0 or -1.
    step: isize,
}

/// Places of the output, `step` apart, where one index of the input stands.
struct Places {
    first: usize,
    step: usize,
    count: usize,
}

impl Along {
    /// The run that starts at `at`.
    fn run(self, at: usize, size: usize, output: usize) -> Run {
        let source = self.source(at, size);
        let (i, n) = (at as i64, size as i64);
        // Where it ends, if not before with the output.
        let (step, end) = match (self, source) {
            (_, None) if size == 0 => (0, output as i64),
            (Along::Pad(before), None) => (0, if i < before { before } else { output as i64 }),
            (_, None) => (0, i + 1),
            (Along::Pad(before), _) => (1, before + n),
            (Along::Flip, _) => (-1, n),
            (Along::Wrap(_), Some(source)) => (1, i + n - source as i64),
            (Along::Each(times), _) => (0, (i / times.max(1) as i64 + 1) * times.max(1) as i64),
            (Along::Reflect(before) | Along::Clamp(before), _) => {
                let outside = if matches!(self, Along::Clamp(_)) { 0 } else { -1 };
                match i - before {
                    // Mirrored at the last element instead, which has no neighbour of its run.
                    place if place <= -n && outside == -1 => (0, i + 1),
                    place if place < 0 => (outside, before),
                    place if place < n => (1, before + n),
                    _ => (outside, output as i64),
                }
            }
        };
        let len = (end.min(output as i64) - i).max(1) as usize;
        // Backwards it ends with the first element at the latest.
        let len = source.map_or(len, |source| if step < 0 { len.min(source + 1) } else { len });
        Run { at, len, source, step }
    }

    /// The runs that the output is made of.
    fn runs(self, size: usize, output: usize) -> impl Iterator<Item = Run> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let run = (at < output).then(|| self.run(at, size, output))?;
            at += run.len;
            Some(run)
        })
    }

    /// Where in the output index `j` of the input stands, in order.
    fn places(self, j: usize, size: usize, output: usize) -> SmallVec<[Places; 3]> {
        let (index, n, end) = (j as i64, size as i64, output as i64);
        let mut found: SmallVec<[Places; 3]> = SmallVec::new();
        let mut add = |first: i64, step: i64, count: i64| {
            if (0..end).contains(&first) && count > 0 {
                let [first, step, count] = [first, step, count].map(|number| number as usize);
                found.push(Places { first, step, count });
            }
        };
        match self {
            Along::Pad(before) => add(index + before, 1, 1),
            Along::Flip => add(n - 1 - index, 1, 1),
            Along::Wrap(before) => {
                let first = (index + before).rem_euclid(n);
                add(first, n, (end - first + n - 1) / n);
            }
            Along::Each(times) => {
                let times = times.max(1) as i64;
                add(index * times, 1, times.min(end - index * times));
            }
            Along::Reflect(before) => {
                let mut all = [before - index, before + index, 2 * (n - 1) - index + before];
                all.sort_unstable();
                for (at, &place) in all.iter().enumerate() {
                    let again = at > 0 && all[at - 1] == place;
                    if !again && place >= 0 && self.source(place as usize, size) == Some(j) {
                        add(place, 1, 1);
                    }
                }
            }
            Along::Clamp(before) => {
                if j == 0 {
                    add(0, 1, before.min(end));
                }
                add(index + before, 1, 1);
                if index == n - 1 {
                    let after = (before + n).max(0);
                    add(after, 1, end - after);
                }
            }
        }
        found
    }
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
    // A tensor without dimensions is a line of one element.
    let (ways, size) = match rank {
        0 => (Along::Pad(0), 1),
        _ => (along[outer], input.shape()[outer]),
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
                let moved = along[d].source(at, input.shape()[d]);
                let moved = moved.map(|from| from * input.layout().strides()[d]);
                source = source.zip(moved).map(|(a, b)| a + b);
            }
            for run in ways.runs(size, inner) {
                let first = source.zip(run.source).map(|(row, at)| row + at * from_step);
                // SAFETY: `target` and the run's places are indices of the output's shape; `first`
                // and those of the run after it are indices of the input's, which `Along::run`
                // keeps to.
                unsafe {
                    let to = to.add(target + run.at * to_step);
                    match first {
                        None => (0..run.len).for_each(|i| *to.add(i * to_step) = value),
                        Some(first) if to_step == 1 && from_step == 1 && run.step == 1 => {
                            to.copy_from_nonoverlapping(from.add(first), run.len);
                        }
                        Some(first) => {
                            let (from, step) = (from.add(first), run.step * from_step as isize);
                            for i in 0..run.len {
                                *to.add(i * to_step) = *from.offset(i as isize * step);
                            }
                        }
                    }
                }
            }
        }
    });
}

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
    if out.layout().numel() > 0 {
        match_dtype!(out.dtype(), T => unrearrange_as::<T>(&out, &grad, along));
    }
    Ok(())
}

/// The places of one index of each dimension, and what they are multiplied by.
type Stood = SmallVec<[(SmallVec<[Places; 3]>, usize); 6]>;

fn unrearrange_as<T: Element>(out: &Operand<'_>, grad: &Operand<'_>, along: &[Along]) {
    let (shape, rank) = (out.shape(), along.len());
    let (outer, inner) = (rank.saturating_sub(1), *shape.last().unwrap_or(&1));
    let places = |d: usize, at: usize| {
        (along[d].places(at, shape[d], grad.shape()[d]), grad.layout().strides()[d])
    };
    parallel::split(out.layout().numel() / inner, (GRAIN / 4 / inner).max(1), |rows| {
        let (to, from) = (out.first::<T>(), grad.first::<T>());
        for row in rows {
            let (mut rest, mut target, mut stood) = (row, 0, Stood::new());
            for d in (0..outer).rev() {
                let at = rest % shape[d];
                rest /= shape[d];
                target += at * out.layout().strides()[d];
                stood.insert(0, places(d, at));
            }
            for at in 0..inner {
                let mut target = target;
                stood.truncate(outer);
                if rank > 0 {
                    target += at * out.layout().strides()[outer];
                    stood.push(places(outer, at));
                }
                // SAFETY: the places are indices of the gradient's shape in each dimension, and
                // `target` is one of the output's, which only this thread writes.
                unsafe { *to.add(target) = T::from_f64(sum_at(from, &stood, 0)) };
            }
        }
    });
}

/// The sum over every combination of places, from `offset` on.
///
/// # Safety
/// Every combination must be an element from `from` on.
unsafe fn sum_at<T: Element>(
    from: *const T,
    stood: &[(SmallVec<[Places; 3]>, usize)],
    offset: usize,
) -> f64 {
    // SAFETY: as the caller promises.
    unsafe {
        match stood.split_first() {
            None => (*from.add(offset)).to_f64(),
            Some(((places, stride), rest)) => {
                let each = |p: &Places| {
                    let (first, step) = (p.first, p.step);
                    (0..p.count).map(move |k| (first + k * step) * stride)
                };
                let all = places.iter().flat_map(each);
                all.map(|place| sum_at(from, rest, offset + place)).sum::<f64>()
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

    #[test]
    fn runs_and_places_agree_with_the_sources() {
        for along in WAYS {
            for size in 1..7 {
                for output in 0..15 {
                    if matches!(along, Along::Reflect(2)) && (size < 3 || output > 2 * size + 1) {
                        continue; // Mirrored more than once, which nobody asks for.
                    }
                    let sources: Vec<_> = (0..output).map(|i| along.source(i, size)).collect();
                    let mut from_runs = Vec::new();
                    for run in along.runs(size, output) {
                        let at = |i: usize| run.source.map(|s| s as isize + i as isize * run.step);
                        from_runs.extend((0..run.len).map(at));
                    }
                    let wanted = sources.iter().map(|s| s.map(|s| s as isize));
                    assert!(from_runs.iter().copied().eq(wanted), "{along:?} {size} {output}");
                    for j in 0..size {
                        let places = along.places(j, size, output);
                        let each = |p: &Places| {
                            (0..p.count).map(|k| p.first + k * p.step).collect::<Vec<_>>()
                        };
                        let have: Vec<usize> = places.iter().flat_map(each).collect();
                        let want = (0..output).filter(|&i| sources[i] == Some(j));
                        assert!(have.iter().copied().eq(want), "{along:?} {j} {size} {output}");
                    }
                }
            }
        }
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
