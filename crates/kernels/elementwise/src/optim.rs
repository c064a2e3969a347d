//! Steps of optimizers over many parameters at once, in place, without temporaries.

use plimsoll_core::{Error, Result};

use plimsoll_engine::generate::load_real;
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
    /// Which step this is, from 1; `None` if each parameter's is an input.
    pub step: Option<f64>,
    /// Up instead of down.
    pub maximize: bool,
    /// Whether the divisor is the largest running mean of squares so far (AMSGrad).
    pub amsgrad: bool,
}

impl AdamW {
    /// Tensors that are written for each gradient.
    pub fn written(&self) -> usize {
        if self.amsgrad { 4 } else { 3 }
    }

    /// Tensors that are read for each parameter.
    pub fn read(&self) -> usize {
        if self.step.is_some() { 1 } else { 2 }
    }
}

/// Inputs: the gradients, then each parameter's step if there is no number. Outputs, which are read
/// too: for each gradient its parameter, then for each the running mean, then for each the running
/// mean of squares, then for AMSGrad for each the largest of those.
pub fn adamw(launch: &CpuLaunch<'_>, step: &AdamW) -> Result<()> {
    let count = launch.inputs.len() / step.read();
    if launch.inputs.len() != count * step.read() || launch.outputs.len() != step.written() * count
    {
        return Err(Error::invalid_argument(format!(
            "a step takes {} tensors to read and {} to write for each parameter",
            step.read(),
            step.written()
        ))
        .in_operation(launch.operation));
    }
    for index in 0..count {
        let number = match step.step {
            Some(number) => number,
            None => number(launch, &launch.inputs[count + index])?,
        };
        let grad = launch.inputs[index];
        let [parameter, mean, square] = [0, 1, 2].map(|part| launch.outputs[part * count + index]);
        let dtype = parameter.dtype();
        if step.amsgrad {
            let all = [parameter, grad, mean, square, launch.outputs[3 * count + index]];
            match_float!(launch, dtype, T => one::<T, 5>(launch, all, step, number))?;
        } else {
            let all = [parameter, grad, mean, square];
            match_float!(launch, dtype, T => one::<T, 4>(launch, all, step, number))?;
        }
    }
    Ok(())
}

/// The one element of a step.
fn number(launch: &CpuLaunch<'_>, step: &Operand<'_>) -> Result<f64> {
    if step.layout().numel() != 1 {
        let why = format!("a step is one number, not a tensor of shape {:?}", step.shape());
        return Err(Error::shape(launch.operation, why));
    }
    // SAFETY: it has an element 0.
    Ok(unsafe { load_real(step, 0) })
}

fn one<T: Float, const N: usize>(
    launch: &CpuLaunch<'_>,
    all: [Operand<'_>; N],
    step: &AdamW,
    number: f64,
) -> Result<()> {
    for operand in &all {
        plimsoll_engine::map::check::<T>(launch, operand)?;
    }
    let factors = Factors::<T::Wide>::of(step, number);
    iterate::run_addresses(all, |tile| {
        simd::dispatch_level(Rows::<T, N> { factors, tile });
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
    fn of(step: &AdamW, number: f64) -> Factors<R> {
        let correction = |beta: f64| 1.0 - beta.powf(number);
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

struct Rows<'a, T: Float, const N: usize> {
    factors: Factors<T::Wide>,
    tile: &'a Tile<N>,
}

impl<T: Float, const N: usize> LevelKernel for Rows<'_, T, N> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Rows { factors: f, tile } = self;
        for row in 0..tile.rows {
            let pointers = tile.row(row);
            for i in 0..tile.len {
                let at: [*mut T; N] = std::array::from_fn(|k| {
                    pointers[k].wrapping_add(i * tile.inner[k]).cast::<T>()
                });
                let (p, g, m, v) = (at[0], at[1], at[2], at[3]);
                // SAFETY: the tile's elements are within its operands (the engine's promise) and
                // are `T` (`one` checked); the launch's claim lets it write all but the gradient,
                // and no two of them overlap (dispatch checked).
                unsafe {
                    let grad = (*g).widen() * f.sign;
                    let mean = (*m).widen();
                    let mean = mean + (grad - mean) * f.new1;
                    let square = (*v).widen() * f.beta2 + grad * grad * f.new2;
                    let mut under = square;
                    if N == 5 {
                        let largest = (*at[4]).widen();
                        // The second branch is a NaN's, too.
                        under = if largest > square { largest } else { square };
                        *at[4] = T::narrow(under);
                    }
                    let divisor = under.sqrt() / f.root + f.eps;
                    *p = T::narrow((*p).widen() * f.kept - f.size * (mean / divisor));
                    *m = T::narrow(mean);
                    *v = T::narrow(square);
                }
            }
        }
    }
}
