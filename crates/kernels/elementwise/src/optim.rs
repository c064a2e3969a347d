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
    /// How far a step goes; `None` if that is an input.
    pub learning_rate: Option<f64>,
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
    /// Whether an input says what the gradients were multiplied by. They are divided by it, in
    /// place.
    pub scaled: bool,
    /// Whether an input says that nothing is to happen: it is 1 then.
    pub skips: bool,
}

impl AdamW {
    /// Tensors that are written for each parameter.
    fn written(&self) -> usize {
        3 + usize::from(self.amsgrad) + usize::from(self.scaled)
    }

    /// Tensors that are read for each parameter.
    fn read(&self) -> usize {
        usize::from(!self.scaled) + usize::from(self.step.is_none())
    }

    /// Tensors that are read for all parameters together.
    fn shared(&self) -> usize {
        usize::from(self.learning_rate.is_none())
            + usize::from(self.scaled)
            + usize::from(self.skips)
    }

    /// What each operand of a step is. Inputs are the gradients, if they are not written; each
    /// parameter's step, if it is not a number; the learning rate, the factor of the gradients and
    /// whether to skip, if there are such. Outputs, which are read too, are for each parameter
    /// itself, its running mean, its running mean of squares, for AMSGrad the largest of those, and
    /// the gradient if it is written.
    pub fn operands<'a>(
        &self,
        operation: &'static str,
        inputs: &'a [Operand<'a>],
        outputs: &'a [Operand<'a>],
    ) -> Result<Operands<'a>> {
        let count = outputs.len() / self.written();
        if inputs.len() != count * self.read() + self.shared()
            || outputs.len() != count * self.written()
        {
            return Err(Error::invalid_argument(format!(
                "a step takes {} tensors to read and {} to write for each parameter, and {} to read for all",
                self.read(),
                self.written(),
                self.shared()
            ))
            .in_operation(operation));
        }
        let mut read = inputs;
        let mut written = outputs;
        let grads = if self.scaled { None } else { Some(take(&mut read, count)) };
        let steps = self.step.is_none().then(|| take(&mut read, count));
        let mut shared = read.iter();
        let [parameters, means, squares] = [(); 3].map(|()| take(&mut written, count));
        let largest = self.amsgrad.then(|| take(&mut written, count));
        Ok(Operands {
            parameters,
            grads: grads.unwrap_or(written),
            means,
            squares,
            largest,
            steps,
            learning_rate: shared.next_if(self.learning_rate.is_none()),
            scale: shared.next_if(self.scaled),
            skip: shared.next_if(self.skips),
        })
    }
}

/// The first `count` of `list`, which keeps the others.
fn take<'a>(list: &mut &'a [Operand<'a>], count: usize) -> &'a [Operand<'a>] {
    let (first, rest) = list.split_at(count);
    *list = rest;
    first
}

trait NextIf: Iterator {
    /// The next one if there is one.
    fn next_if(&mut self, is_there: bool) -> Option<Self::Item> {
        if is_there { self.next() } else { None }
    }
}
impl<I: Iterator> NextIf for I {}

/// The operands of a step by what they are; see [`AdamW::operands`]. Lists have one for each
/// parameter, the others are one number each.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The parameters.
    pub parameters: &'a [Operand<'a>],
    /// Their gradients.
    pub grads: &'a [Operand<'a>],
    /// The running means of the gradients.
    pub means: &'a [Operand<'a>],
    /// The running means of their squares.
    pub squares: &'a [Operand<'a>],
    /// The largest of those, for AMSGrad.
    pub largest: Option<&'a [Operand<'a>]>,
    /// Which step each parameter is at.
    pub steps: Option<&'a [Operand<'a>]>,
    /// How far the step goes.
    pub learning_rate: Option<&'a Operand<'a>>,
    /// What the gradients were multiplied by.
    pub scale: Option<&'a Operand<'a>>,
    /// Whether nothing is to happen.
    pub skip: Option<&'a Operand<'a>>,
}

/// One step of AdamW; see [`AdamW::operands`] for what it takes.
pub fn adamw(launch: &CpuLaunch<'_>, step: &AdamW) -> Result<()> {
    let of = step.operands(launch.operation, launch.inputs, launch.outputs)?;
    if let Some(skip) = of.skip
        && number(launch, skip)? == 1.0
    {
        return Ok(());
    }
    let given = |operand: Option<&Operand<'_>>| operand.map(|o| number(launch, o)).transpose();
    let learning_rate = given(of.learning_rate)?.or(step.learning_rate).unwrap_or(0.0);
    let scale = given(of.scale)?;
    for index in 0..of.parameters.len() {
        let at = given(of.steps.map(|steps| &steps[index]))?.or(step.step).unwrap_or(0.0);
        let numbers = Numbers { step: at, learning_rate, scale: scale.unwrap_or(1.0) };
        let [parameter, grad, mean, square] =
            [of.parameters, of.grads, of.means, of.squares].map(|list| list[index]);
        let dtype = parameter.dtype();
        match (of.largest.map(|list| list[index]), step.scaled) {
            (None, false) => {
                let all = [parameter, grad, mean, square];
                match_float!(launch, dtype, T => one::<T, 4, false>(launch, all, step, numbers))?;
            }
            (None, true) => {
                let all = [parameter, grad, mean, square];
                match_float!(launch, dtype, T => one::<T, 4, true>(launch, all, step, numbers))?;
            }
            (Some(largest), false) => {
                let all = [parameter, grad, mean, square, largest];
                match_float!(launch, dtype, T => one::<T, 5, false>(launch, all, step, numbers))?;
            }
            (Some(largest), true) => {
                let all = [parameter, grad, mean, square, largest];
                match_float!(launch, dtype, T => one::<T, 5, true>(launch, all, step, numbers))?;
            }
        }
    }
    Ok(())
}

/// The numbers of one parameter's step that may be inputs.
#[derive(Clone, Copy)]
struct Numbers {
    step: f64,
    learning_rate: f64,
    scale: f64,
}

/// The one element of an operand.
fn number(launch: &CpuLaunch<'_>, operand: &Operand<'_>) -> Result<f64> {
    if operand.layout().numel() != 1 {
        let why = format!("expected one number, not a tensor of shape {:?}", operand.shape());
        return Err(Error::shape(launch.operation, why));
    }
    // SAFETY: it has an element 0.
    Ok(unsafe { load_real(operand, 0) })
}

fn one<T: Float, const N: usize, const SCALED: bool>(
    launch: &CpuLaunch<'_>,
    all: [Operand<'_>; N],
    step: &AdamW,
    numbers: Numbers,
) -> Result<()> {
    for operand in &all {
        plimsoll_engine::map::check::<T>(launch, operand)?;
    }
    let factors = Factors::<T::Wide>::of(step, numbers);
    iterate::run_addresses(all, |tile| {
        simd::dispatch_level(Rows::<T, N, SCALED> { factors, tile });
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
    scale: R,
}

impl<R: Real> Factors<R> {
    fn of(step: &AdamW, numbers: Numbers) -> Factors<R> {
        let Numbers { step: number, learning_rate, scale } = numbers;
        let correction = |beta: f64| 1.0 - beta.powf(number);
        Factors {
            kept: R::of(1.0 - learning_rate * step.weight_decay),
            new1: R::of(1.0 - step.beta1),
            beta2: R::of(step.beta2),
            new2: R::of(1.0 - step.beta2),
            root: R::of(correction(step.beta2).sqrt()),
            eps: R::of(step.eps),
            size: R::of(learning_rate / correction(step.beta1)),
            sign: R::of(if step.maximize { -1.0 } else { 1.0 }),
            scale: R::of(scale),
        }
    }
}

struct Rows<'a, T: Float, const N: usize, const SCALED: bool> {
    factors: Factors<T::Wide>,
    tile: &'a Tile<N>,
}

impl<T: Float, const N: usize, const SCALED: bool> LevelKernel for Rows<'_, T, N, SCALED> {
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
                // and that too if it is scaled; no two of them overlap (dispatch checked).
                unsafe {
                    let mut grad = (*g).widen();
                    if SCALED {
                        grad = grad / f.scale;
                        *g = T::narrow(grad);
                    }
                    let grad = grad * f.sign;
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
