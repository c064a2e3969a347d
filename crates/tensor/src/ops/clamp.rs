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

    fn node_name(&self, inputs: &[Meta]) -> Option<&'static str> {
        let has_tensors = inputs.len() > 1;
        Some(match self.info.name {
            "clamp" if !has_tensors => "ClampBackward1",
            "clamp_min" if has_tensors => "ClampMinBackward1",
            "clamp_max" if has_tensors => "ClampMaxBackward1",
            _ => return None,
        })
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

    /// Beside numbers the element has the gradient between the bounds, their ends left out. Beside
    /// tensors it shares it evenly with the bound that it equals, and a bound has it that the
    /// element was brought to; bounds that cross give it to the upper one. As in PyTorch.
    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, x) = (backward.grad()?, backward.input(0)?);
        let (low, high) = (self.operand(self.low, backward)?, self.operand(self.high, backward)?);
        if backward.inputs.len() == 1 {
            let within = match (low, high) {
                (Some(low), Some(high)) => x.gt(low)?.mul(&x.lt(high)?)?,
                (Some(low), None) => x.gt(low)?,
                (None, Some(high)) => x.lt(high)?,
                (None, None) => return Ok(smallvec::smallvec![Some(grad.clone())]),
            };
            return Ok(smallvec::smallvec![Some(Tensor::where_(&within, grad, 0.0)?)]);
        }
        let places = Places::new(x, low, high)?;
        (0..backward.inputs.len())
            .map(|index| {
                backward.for_input(index, || {
                    let (whole, half) = match index {
                        0 => places.of_element()?,
                        _ if self.low == Bound::Input(index) => places.of_lower()?,
                        _ => places.of_upper()?,
                    };
                    let shared = Tensor::where_(&half, &grad.mul(0.5)?, 0.0)?;
                    Tensor::where_(&whole, grad, &shared)?.sum_to(backward.inputs[index].shape())
                })
            })
            .collect()
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Where elements lie beside their bounds. A bound that there is not is nowhere.
struct Places {
    under: Tensor,
    at_lower: Tensor,
    at_upper: Tensor,
    over: Tensor,
    crossed: Tensor,
    both: bool,
    nan: Tensor,
}

impl Places {
    fn new(x: &Tensor, low: Option<Other<'_>>, high: Option<Other<'_>>) -> Result<Places> {
        let nan = x.isnan()?;
        let nowhere = nan.zeros_like()?;
        let beside = |bound: Option<Other<'_>>, how: fn(&Tensor, Other<'_>) -> Result<Tensor>| {
            bound.map_or_else(|| Ok(nowhere.clone()), |bound| how(x, bound))
        };
        let crossed = match (low, high) {
            (Some(Other::Tensor(low)), Some(high)) => low.gt(high)?,
            (Some(Other::Scalar(low)), Some(Other::Tensor(high))) => high.lt(low)?,
            _ => nowhere.clone(),
        };
        Ok(Places {
            under: beside(low, |x, low| x.lt(low))?,
            at_lower: beside(low, |x, low| x.eq(low))?,
            at_upper: beside(high, |x, high| x.eq(high))?,
            over: beside(high, |x, high| x.gt(high))?,
            crossed,
            both: low.is_some() && high.is_some(),
            nan,
        })
    }

    /// Where the element has all of the gradient, and where it has half.
    fn of_element(&self) -> Result<(Tensor, Tensor)> {
        let at_one = self.at_lower.logical_xor(&self.at_upper)?;
        let outside = self.under.logical_or(&self.over)?.logical_or(&at_one)?;
        let inside = outside.logical_or(&self.crossed)?.logical_not()?;
        let straight = self.crossed.logical_not()?;
        Ok((inside.logical_or(&self.nan)?, at_one.logical_and(&straight)?))
    }

    /// The same of the lower bound.
    fn of_lower(&self) -> Result<(Tensor, Tensor)> {
        let whole =
            if self.both { self.under.clone() } else { self.under.logical_or(&self.nan)? };
        let straight = self.crossed.logical_not()?;
        let half = self.at_lower.logical_and(&self.at_upper.logical_not()?)?;
        Ok((whole.logical_and(&straight)?, half.logical_and(&straight)?))
    }

    /// The same of the upper bound.
    fn of_upper(&self) -> Result<(Tensor, Tensor)> {
        let whole = if self.both { self.over.clone() } else { self.over.logical_or(&self.nan)? };
        let half = self.at_upper.logical_and(&self.at_lower.logical_not()?)?;
        Ok((whole.logical_or(&self.crossed)?, half))
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
        // First, as in PyTorch: a tensor without dimensions is a tensor and no number.
        "clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
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
