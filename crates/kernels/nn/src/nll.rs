//! The negative log-likelihood of targets, from log-probabilities, and its gradient.

use plimsoll_core::Result;

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::Float;
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float, parallel};

pub use crate::rows::Reduction;
use crate::rows::{Rows, Total, add_up, check_targets, operand, row_major, totals, totals_bytes};

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct NllArgs {
    /// How the rows' losses become the result.
    pub reduction: Reduction,
    /// Rows with this target count for nothing.
    pub ignore_index: i64,
    /// Whether the classes have weights.
    pub weight: bool,
}

/// Scratch of [`nll_loss`].
pub fn nll_workspace_bytes(shape: &[usize]) -> usize {
    totals_bytes(shape)
}

/// [log-probabilities, targets, weight?] -> the loss, and [the sum of the rows' weights] if there
/// is a second output.
pub fn nll_loss(launch: &CpuLaunch<'_>, args: NllArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: NllArgs) -> Result<()> {
    let input = operand(launch, launch.inputs, 0)?;
    let rows = Rows::of(input.shape());
    let x = row_major::<T>(launch, &input)?;
    let targets = operand(launch, launch.inputs, 1)?;
    let targets = check_targets(launch, &targets, rows, args.ignore_index)?;
    let weight = match args.weight {
        true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, 2)?)?),
        false => None,
    };
    let loss = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    let sums = totals(launch, rows)?;
    parallel::split(rows.units(), GRAIN / 64, |units| {
        for unit in units {
            let mut total = Total::default();
            for row in rows.unit(unit) {
                // SAFETY: a row of the input and its target, which `check_targets` found to be a
                // class; each row and each unit is one part's.
                unsafe {
                    let target = *targets.add(row);
                    let (mut own, mut share) = (0.0, 0.0);
                    if target != args.ignore_index {
                        share = weight.map_or(1.0, |w| (*w.add(target as usize)).to_f64());
                        let score = *x.add(rows.start(row) + target as usize * rows.inner);
                        own = -score.to_f64() * share;
                    }
                    if args.reduction == Reduction::None {
                        *loss.add(row) = T::from_f64(own);
                    }
                    total = Total { loss: total.loss + own, weight: total.weight + share };
                }
            }
            // SAFETY: the unit's own place.
            unsafe { *sums.add(unit) = total };
        }
    });
    let total = add_up(sums, rows.units());
    reduced(launch, args.reduction, total, loss.0)
}

/// Writes the sum or the mean, and the sum of the weights where it is asked for.
pub(crate) fn reduced<T: Float>(
    launch: &CpuLaunch<'_>,
    reduction: Reduction,
    total: Total,
    loss: *mut T,
) -> Result<()> {
    let value = match reduction {
        Reduction::None => None,
        Reduction::Sum => Some(total.loss),
        Reduction::Mean => Some(total.loss / total.weight),
    };
    if let Some(value) = value {
        // SAFETY: a reduced loss has one element.
        unsafe { *loss = T::from_f64(value) };
    }
    if let Some(out) = launch.outputs.get(1) {
        let sum = row_major::<T::Wide>(launch, out)?;
        // SAFETY: the sum of the weights is one element.
        unsafe { *sum.0 = T::Wide::from_f64(total.weight) };
    }
    Ok(())
}

/// [grad, targets, weight?, sum of weights?] -> the gradient of the log-probabilities, whose shape
/// is the output's. The sum is there for means.
pub fn nll_loss_backward(launch: &CpuLaunch<'_>, args: NllArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => backward::<T>(launch, args))
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: NllArgs) -> Result<()> {
    let out = operand(launch, launch.outputs, 0)?;
    let rows = Rows::of(out.shape());
    let to = row_major::<T>(launch, &out)?;
    let grad = row_major::<T>(launch, &operand(launch, launch.inputs, 0)?)?;
    let targets = operand(launch, launch.inputs, 1)?;
    let targets = check_targets(launch, &targets, rows, args.ignore_index)?;
    let weight = match args.weight {
        true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, 2)?)?),
        false => None,
    };
    let divisor = divisor::<T>(launch, args, 2 + usize::from(args.weight))?;
    let numel = out.layout().numel();
    parallel::split(numel, GRAIN, |range| {
        // SAFETY: each part fills its own range of the output.
        unsafe { std::slice::from_raw_parts_mut(to.add(range.start), range.len()) }.fill(T::ZERO);
    });
    for row in 0..rows.count() {
        // SAFETY: as in `forward`.
        unsafe {
            let target = *targets.add(row);
            if target != args.ignore_index {
                let of = if args.reduction == Reduction::None { row } else { 0 };
                let share = weight.map_or(1.0, |w| (*w.add(target as usize)).to_f64());
                let slope = -(*grad.add(of)).to_f64() * share / divisor;
                *to.add(rows.start(row) + target as usize * rows.inner) = T::from_f64(slope);
            }
        }
    }
    Ok(())
}

/// What a mean divides by: input `at`; 1 otherwise.
pub(crate) fn divisor<T: Float>(launch: &CpuLaunch<'_>, args: NllArgs, at: usize) -> Result<f64> {
    if args.reduction != Reduction::Mean {
        return Ok(1.0);
    }
    let sum = row_major::<T::Wide>(launch, &operand(launch, launch.inputs, at)?)?;
    // SAFETY: the sum of the weights is one element.
    Ok(unsafe { *sum.0 }.to_f64())
}
