//! Random tensors: new ones, and existing ones overwritten. The value carries its piece of the
//! generator's stream, so that running it again gives the same numbers.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::generator::Draws;
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OpInfo, Operation, Out};
use plimsoll_kernels::cpu::random as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Distribution {
    /// Floats in `[low, high)`.
    Uniform { low: f64, high: f64 },
    /// Floats around `mean` with a standard `deviation`.
    Normal { mean: f64, deviation: f64 },
    /// Whole numbers in `[low, high)`.
    Integer { low: i64, high: i64 },
}

impl Distribution {
    /// Counters of the stream that `meta`'s elements use up.
    pub(crate) fn counters(self, meta: &Meta) -> u64 {
        let kind = match self {
            Distribution::Uniform { .. } => cpu::Distribution::Uniform,
            Distribution::Normal { .. } => cpu::Distribution::Normal,
            Distribution::Integer { .. } => cpu::Distribution::Integer,
        };
        let words = cpu::draws_per_element(meta.dtype, kind) as u64;
        (meta.layout.numel() as u64).saturating_mul(words).div_ceil(4)
    }

    fn fill(self, launch: &CpuLaunch<'_>, draws: Draws) -> Result<()> {
        let (stream, launch) = draws.resolve(launch);
        // The old values, of a tensor that is overwritten, do not matter.
        let launch = &CpuLaunch { inputs: &[], ..launch };
        match self {
            Distribution::Uniform { low, high } => cpu::uniform(launch, low, high, stream),
            Distribution::Normal { mean, deviation } => {
                cpu::normal(launch, mean, deviation, stream)
            }
            Distribution::Integer { low, high } => cpu::randint(launch, low, high, stream),
        }
    }
}

/// A new tensor of random numbers. Its one input, if any, is what its draws start from.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) meta: Meta,
    pub(crate) distribution: Distribution,
    pub(crate) draws: Draws,
}

impl Operation for Random {
    fn info(&self) -> &'static OpInfo {
        match self.distribution {
            Distribution::Uniform { .. } => &RAND,
            Distribution::Normal { .. } => &RANDN,
            Distribution::Integer { .. } => &RANDINT,
        }
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(self.meta.clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        self.distribution.fill(launch, self.draws)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// Overwrites input 0 with random floats. Only in place. Input 1, if any, is what its draws start
/// from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Randomize {
    pub(crate) distribution: Distribution,
    pub(crate) draws: Draws,
}

impl Operation for Randomize {
    fn info(&self) -> &'static OpInfo {
        match self.distribution {
            Distribution::Normal { .. } => &NORMAL_,
            _ => &UNIFORM_,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(inputs[0].clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        self.distribution.fill(launch, self.draws)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = Some(backward.grad()?.zeros_like()?);
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "random",
        signatures,
        differentiable: false,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::FLOATS,
        ..OpInfo::BARE
    }
}

static RAND: OpInfo =
    info("rand", &["rand(int[] size, *, DType? dtype=None, Device? device=None) -> Tensor"]);
static RANDN: OpInfo =
    info("randn", &["randn(int[] size, *, DType? dtype=None, Device? device=None) -> Tensor"]);
static RANDINT: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    ..info(
        "randint",
        &[
            "randint(int low, int high, int[] size, *, DType? dtype=None, Device? device=None) -> Tensor",
        ],
    )
};
static UNIFORM_: OpInfo = OpInfo {
    differentiable: true,
    ..info(
        "uniform_",
        &[
            "uniform_(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor",
        ],
    )
};
static NORMAL_: OpInfo = OpInfo {
    differentiable: true,
    ..info(
        "normal_",
        &[
            "normal_(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&RAND, &RANDN, &RANDINT, &UNIFORM_, &NORMAL_];
