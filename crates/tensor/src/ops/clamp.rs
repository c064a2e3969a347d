//! Bounds: each element between a lower and an upper one, each of which is a tensor, a host number,
//! or not there.

use std::sync::Arc;

use plimsoll_core::{Error, Result, Scalar};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::ternary as cpu;
use plimsoll_kernels::{Argument, CpuLaunch, Meta};

use super::elementwise;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Promotion,
    Saves,
};
use crate::promotion::Other;

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// There is none.
    None,
    /// A host number.
    Number(Scalar),
    /// Input of this index.
    Input(usize),
}

impl Bound {
    /// The bound as a kernel's argument; `free` if there is none.
    fn argument(self, free: Scalar) -> Argument {
        match self {
            Bound::None => Argument::Number(free),
            Bound::Number(number) => Argument::Number(number),
            Bound::Input(index) => Argument::Input(index),
        }
    }

    fn number(self) -> Option<Scalar> {
        if let Bound::Number(number) = self { Some(number) } else { None }
    }
}

/// Input 0 between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clamp {
    pub(crate) info: &'static OpInfo,
    pub(crate) low: Bound,
    pub(crate) high: Bound,
}

impl Clamp {
    /// Both bounds as arguments. What is not there does not bind: an infinity, or for integers
    /// their ends.
    fn arguments(&self, is_float: bool) -> [Argument; 2] {
        let ends = match is_float {
            true => [Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY)],
            false => [Scalar::Int(i64::MIN), Scalar::Int(i64::MAX)],
        };
        [self.low.argument(ends[0]), self.high.argument(ends[1])]
    }

    fn operand<'a>(&self, bound: Bound, backward: &Backward<'a>) -> Result<Option<Other<'a>>> {
        Ok(match bound {
            Bound::None => None,
            Bound::Number(number) => Some(Other::Scalar(number)),
            Bound::Input(index) => Some(Other::Tensor(backward.input(index)?)),
        })
    }
}

impl Operation for Clamp {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.info.name, inputs, inputs[0].dtype)
    }

    fn number(&self) -> Option<Scalar> {
        // The one that promotes further.
        match (self.low.number(), self.high.number()) {
            (Some(low), Some(high)) if low.class() >= high.class() => Some(low),
            (low, high) => high.or(low),
        }
    }

    fn saves(&self, _needs: Needs) -> Saves {
        let bounds = [self.low, self.high].into_iter();
        bounds.fold(Saves::input(0), |saves, bound| match bound {
            Bound::Input(index) => saves.and(Saves::input(index)),
            _ => saves,
        })
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let is_float = launch.inputs.first().is_some_and(|input| input.dtype().is_float());
        let [low, high] = self.arguments(is_float);
        cpu::clamp(launch, low, high)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let [low, high] = self.arguments(launch.inputs[0].dtype().is_float());
        cuda::tail_of(launch, &CLAMP, &[Argument::Input(0), low, high], [0.0; 3])
    }

    /// The element has the gradient where it is within the bounds, an end included; else the bound
    /// that it was brought to. Bounds that cross give it to the upper one.
    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, x) = (backward.grad()?, backward.input(0)?);
        let (low, high) = (self.operand(self.low, backward)?, self.operand(self.high, backward)?);
        let reaches = |bound: Option<Other<'_>>| bound.map(|low| x.ge(low)).transpose();
        let (above, below) = (reaches(low)?, high.map(|high| x.le(high)).transpose()?);
        let kept = |mask: &Tensor, index: usize| {
            Tensor::where_(mask, grad, 0.0)?.sum_to(backward.inputs[index].shape())
        };
        let mut grads = Grads::new();
        grads.push(backward.for_input(0, || {
            let within = match (&above, &below) {
                (Some(above), Some(below)) => above.mul(below)?,
                (Some(one), None) | (None, Some(one)) => one.clone(),
                (None, None) => return Ok(grad.clone()),
            };
            kept(&within, 0)
        })?);
        for index in 1..backward.inputs.len() {
            grads.push(backward.for_input(index, || {
                let bound = backward.input(index)?;
                let mask = if self.low == Bound::Input(index) {
                    let under = x.lt(bound)?;
                    match high {
                        Some(high) => under.mul(&bound.lt(high)?)?,
                        None => under,
                    }
                } else {
                    let over = x.gt(bound)?;
                    match low {
                        Some(Other::Tensor(low)) => over.add(&low.ge(bound)?)?,
                        Some(Other::Scalar(low)) => over.add(&bound.le(low)?)?,
                        None => over,
                    }
                };
                kept(&mask, index)
            })?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// PyTorch's words for bounds that are both missing.
pub(crate) fn no_bounds(name: &'static str) -> Error {
    Error::invalid_argument(
        "neither a lower nor an upper bound is given; give `min`, `max` or both",
    )
    .in_operation(name)
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "clamp",
        signatures,
        differentiable: true,
        in_place: true,
        out: Out::Cast,
        elementwise: true,
        cuda: OnCuda::Kernels(&source_files::TERNARY),
        dtypes: DTypes::NUMBERS,
        inputs: &[Input::Operand],
        promotion: Promotion::Common,
        ..OpInfo::BARE
    }
}

pub(crate) static CLAMP: OpInfo = info(
    "clamp",
    &[
        "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        "clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    ],
);
pub(crate) static CLAMP_MIN: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..info("clamp_min", &["clamp_min(Tensor self, Tensor|Scalar min) -> Tensor"])
};
pub(crate) static CLAMP_MAX: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..info("clamp_max", &["clamp_max(Tensor self, Tensor|Scalar max) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[&CLAMP, &CLAMP_MIN, &CLAMP_MAX];
