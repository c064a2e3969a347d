//! Steps of optimizers over many parameters at once, in place, without temporaries.

use plimsoll_core::{Error, Result};

use plimsoll_engine::iterate::{self, Tile};
use plimsoll_engine::match_float;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Operand};

/// The numbers of one step of AdamW, the same for every element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// How far a step goes.
    pub learning_rate: f64,
    /// How much of the running mean of gradients stays.
    pub beta1: f64,
    /// How much of the running mean of their squares stays.
    pub beta2: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
    /// How much of a parameter goes with each step.
    pub weight_decay: f64,
    /// Which step this is, from 1.
    pub step: f64,
    /// Up instead of down.
    pub maximize: bool,
}

/// Inputs: the gradients. Outputs, which are read too: for each gradient its parameter, then for
/// each the running mean, then for each the running mean of squares.
pub fn adamw(launch: &CpuLaunch<'_>, step: &AdamW) -> Result<()> {
    let count = launch.inputs.len();
    if launch.outputs.len() != 3 * count {
        return Err(Error::invalid_argument("a step takes three tensors for each gradient")
            .in_operation(launch.operation));
    }
    for (index, grad) in launch.inputs.iter().enumerate() {
        let [parameter, mean, square] = [0, 1, 2].map(|part| launch.outputs[part * count + index]);
        let all = [parameter, *grad, mean, square];
        match_float!(launch, parameter.dtype(), T => one::<T>(launch, all, step))?;
    }
    Ok(())
}

fn one<T: Float>(launch: &CpuLaunch<'_>, all: [Operand<'_>; 4], step: &AdamW) -> Result<()> {
    for operand in &all {
        plimsoll_engine::map::check::<T>(launch, operand)?;
    }
    let factors = Factors::<T::Wide>::of(step);
    iterate::run_addresses(all, |tile| {
        simd::dispatch_level(Rows::<T> { factors, tile });
    });
    Ok(())
}

/// What every element uses, in what they are computed in.
#[derive(Clone, Copy)]
struct Factors<R> {
    kept: R,
    new1: R,
    beta2: R,
    new2: R,
    root: R,
    eps: R,
    size: R,
    sign: R,
}

impl<R: Real> Factors<R> {
    fn of(step: &AdamW) -> Factors<R> {
        let correction = |beta: f64| 1.0 - beta.powf(step.step);
        Factors {
            kept: R::of(1.0 - step.learning_rate * step.weight_decay),
            new1: R::of(1.0 - step.beta1),
            beta2: R::of(step.beta2),
            new2: R::of(1.0 - step.beta2),
            root: R::of(correction(step.beta2).sqrt()),
            eps: R::of(step.eps),
            size: R::of(step.learning_rate / correction(step.beta1)),
            sign: R::of(if step.maximize { -1.0 } else { 1.0 }),
        }
    }
}

struct Rows<'a, T: Float> {
    factors: Factors<T::Wide>,
    tile: &'a Tile<4>,
}

impl<T: Float> LevelKernel for Rows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Rows { factors: f, tile } = self;
        for row in 0..tile.rows {
            let pointers = tile.row(row);
            for i in 0..tile.len {
                let [p, g, m, v] = std::array::from_fn(|k| {
                    pointers[k].wrapping_add(i * tile.inner[k]).cast::<T>()
                });
                // SAFETY: the tile's elements are within its operands (the engine's promise) and
                // are `T` (`one` checked); the launch's claim lets it write all but the gradient,
                // and no two of the four overlap (dispatch checked).
                unsafe {
                    let grad = (*g).widen() * f.sign;
                    let mean = (*m).widen();
                    let mean = mean + (grad - mean) * f.new1;
                    let square = (*v).widen() * f.beta2 + grad * grad * f.new2;
                    let divisor = square.sqrt() / f.root + f.eps;
                    *p = T::narrow((*p).widen() * f.kept - f.size * (mean / divisor));
                    *m = T::narrow(mean);
                    *v = T::narrow(square);
                }
            }
        }
    }
}
