//! Scaled gradients: dividing all of them by their scale, with a look for what is not finite, in
//! one pass; and the scale after a step. The loop is that of the steps (`blocks.rs`): all elements
//! are one row of work. The CUDA twin is `cuda/kernels/unscale.cu`.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::iterate::{GRAIN, Ranges};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Operand, parallel};

use super::blocks::{BLOCK, Lane, Wide};
use super::{change, is_number, number};

/// The numbers of [`update_scale`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateScale {
    /// What the scale is multiplied by after enough steps.
    pub growth_factor: f64,
    /// What it is multiplied by after a step that was skipped.
    pub backoff_factor: f64,
    /// Steps in a row that are enough.
    pub growth_interval: i32,
}

/// What a launch of [`unscale`] writes: the gradients, and one float32 that says whether a gradient
/// was not finite.
pub fn unscale_operands<'a>(
    operation: &'static str,
    inputs: &'a [Operand<'a>],
    outputs: &'a [Operand<'a>],
) -> Result<(&'a Operand<'a>, &'a [Operand<'a>], &'a Operand<'a>)> {
    let (Some(inverse), Some((found, grads))) = (inputs.first(), outputs.split_last()) else {
        let why = "expected what the gradients are multiplied by, and where to say what was found";
        return Err(Error::invalid_argument(why).in_operation(operation));
    };
    for one in [inverse, found] {
        check_number(operation, one)?;
    }
    Ok((inverse, grads, found))
}

fn check_number(operation: &'static str, operand: &Operand<'_>) -> Result<()> {
    if is_number(operand) {
        return Ok(());
    }
    let (dtype, shape) = (operand.dtype(), operand.shape());
    let why = format!("expected one float32, not a tensor of {dtype} and shape {shape:?}");
    Err(Error::shape(operation, why))
}

/// Multiplies all gradients by one number; where one is infinite or NaN, `found` becomes 1.
pub fn unscale(launch: &CpuLaunch<'_>) -> Result<()> {
    let (inverse, grads, found) =
        unscale_operands(launch.operation, launch.inputs, launch.outputs)?;
    let inverse = number(launch, inverse)?;
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for grad in grads {
        match grad.dtype() {
            DType::F64 => wide.push(*grad),
            DType::F32 | DType::BF16 | DType::F16 => narrow.push(*grad),
            other => return Err(plimsoll_engine::wrong_dtype(launch.operation, other)),
        }
    }
    if !(run::<f32>(&narrow, inverse) & run::<f64>(&wide, inverse)) {
        change(found, |_| 1.0);
    }
    Ok(())
}

/// A gradient, and where its elements end in the row of all.
struct Work {
    ranges: Ranges<1>,
    dtype: DType,
    end: usize,
}

/// Gradients that are computed in `R`; whether all of them were finite.
fn run<R: Wide>(grads: &[Operand<'_>], inverse: f64) -> bool {
    let mut end = 0;
    let work = |grad: &Operand<'_>| {
        let ranges = Ranges::new([*grad]);
        end += ranges.numel();
        Work { ranges, dtype: grad.dtype(), end }
    };
    let works: Vec<Work> = grads.iter().map(work).collect();
    let all_finite = AtomicBool::new(true);
    // Multiples of a cache line, so that threads do not write one together.
    const LINE: usize = 64;
    parallel::split(end.div_ceil(LINE), GRAIN / LINE, |lines| {
        let part = lines.start * LINE..end.min(lines.end * LINE);
        let first = works.partition_point(|work| work.end <= part.start);
        let mut finite = true;
        for work in &works[first..] {
            let start = work.end - work.ranges.numel();
            if start >= part.end {
                break;
            }
            let own = part.start.max(start) - start..part.end.min(work.end) - start;
            finite &= range::<R>(work, own, R::of(inverse));
        }
        if !finite {
            all_finite.store(false, Ordering::Relaxed);
        }
    });
    all_finite.into_inner()
}

fn range<R: Wide>(work: &Work, range: Range<usize>, inverse: R) -> bool {
    let mut buffer = [R::ZERO; BLOCK];
    let mut finite = true;
    work.ranges.run(range, |tile| {
        for row in 0..tile.rows {
            let [first] = tile.row(row);
            for start in (0..tile.len).step_by(BLOCK) {
                let values = &mut buffer[..BLOCK.min(tile.len - start)];
                let at = first.wrapping_add(start * tile.inner[0]);
                let lane = Lane { at, stride: tile.inner[0], dtype: Some(work.dtype) };
                // SAFETY: the tile's elements are within the gradient (the engine's promise) and of
                // its dtype; the launch's claim lets this thread write its part of it.
                unsafe {
                    R::load(&lane, values);
                    finite &= simd::dispatch_level(Multiply { values, inverse });
                    // By 1 it is only a look.
                    if inverse != R::ONE {
                        R::store(&lane, values);
                    }
                }
            }
        }
    });
    finite
}

/// Multiplies; gives whether all values were finite.
struct Multiply<'a, R> {
    values: &'a mut [R],
    inverse: R,
}

impl<R: Real> LevelKernel for Multiply<'_, R> {
    type Output = bool;
    #[inline(always)]
    fn run<L: Level>(self) -> bool {
        let mut finite = true;
        for value in self.values.iter_mut() {
            // Infinities and NaNs alone become something other than 0.
            finite &= *value * R::ZERO == R::ZERO;
            *value = *value * self.inverse;
        }
        finite
    }
}

/// The scale and the count of steps since it changed, after a step: outputs 0 (float32) and 1
/// (int32); input 0 says whether the step was skipped.
pub fn update_scale(launch: &CpuLaunch<'_>, numbers: &UpdateScale) -> Result<()> {
    let ([found], [scale, tracker]) = (launch.inputs, launch.outputs) else {
        let why = "expected a scale, its count of steps, and whether the step was skipped";
        return Err(Error::invalid_argument(why).in_operation(launch.operation));
    };
    check_number(launch.operation, found)?;
    check_number(launch.operation, scale)?;
    if tracker.dtype() != DType::I32 || tracker.layout().numel() != 1 {
        let why = format!("the growth tracker is one int32, not {}", tracker.dtype());
        return Err(Error::dtype(launch.operation, why));
    }
    let skipped = number(launch, found)? != 0.0;
    let tracker = tracker.first::<i32>();
    // SAFETY: it has one int32, as was just seen; the launch may read and write it, and this thread
    // has it for itself.
    let steps = unsafe { *tracker };
    let (after, factor) = if skipped {
        (0, Some(numbers.backoff_factor))
    } else if steps + 1 == numbers.growth_interval {
        (0, Some(numbers.growth_factor))
    } else {
        (steps + 1, None)
    };
    if let Some(factor) = factor {
        change(scale, |scale| {
            let new = (f64::from(scale) * factor) as f32;
            // It stops growing before it is infinite.
            if skipped || new.is_finite() { new } else { scale }
        });
    }
    // SAFETY: as above.
    unsafe { *tracker = after };
    Ok(())
}
