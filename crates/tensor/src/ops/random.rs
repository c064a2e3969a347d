//! Random tensors: new ones, and existing ones overwritten. The value carries its piece of the
//! generator's stream, so that running it again gives the same numbers.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_cuda::source_files;

use crate::cuda::{self, CudaLaunch};
use crate::generator::Draws;
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use plimsoll_kernels::cpu::random as cpu;
pub(crate) use plimsoll_kernels::cpu::random::Formula;
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
    /// What a formula makes of one uniform number.
    By(Formula),
}

impl Distribution {
    /// Counters of the stream that `meta`'s elements use up.
    pub(crate) fn counters(self, meta: &Meta) -> u64 {
        let kind = match self {
            Distribution::Uniform { .. } => cpu::Distribution::Uniform,
            Distribution::Normal { .. } => cpu::Distribution::Normal,
            Distribution::Integer { .. } => cpu::Distribution::Integer,
            Distribution::By(_) => cpu::Distribution::Formula,
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
            Distribution::By(formula) => cpu::by_formula(launch, formula, stream),
        }
    }

    fn fill_on_cuda(self, launch: &CudaLaunch<'_>, draws: Draws) -> Result<()> {
        let draw = draws.on_cuda();
        match self {
            Distribution::Uniform { low, high } => cuda::uniform(launch, low, high, draw),
            Distribution::Normal { mean, deviation } => cuda::normal(launch, mean, deviation, draw),
            Distribution::Integer { low, high } => cuda::randint(launch, low, high, draw),
            Distribution::By(formula) => cuda::by_formula(launch, formula, draw),
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
            Distribution::By(formula) => row_of(formula),
        }
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(self.meta.clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        self.distribution.fill(launch, self.draws)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        self.distribution.fill_on_cuda(launch, self.draws)
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
            Distribution::Integer { .. } => &RANDOM_,
            Distribution::Uniform { .. } => &UNIFORM_,
            Distribution::By(formula) => row_of(formula),
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(inputs[0].clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        self.distribution.fill(launch, self.draws)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        self.distribution.fill_on_cuda(launch, self.draws)
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
        cuda: OnCuda::Kernels(&source_files::RANDOM),
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

/// The row of the operation that draws by a formula.
fn row_of(formula: Formula) -> &'static OpInfo {
    match formula {
        Formula::Exponential(_) => &EXPONENTIAL_,
        Formula::Cauchy { .. } => &CAUCHY_,
        Formula::Geometric(_) => &GEOMETRIC_,
        Formula::Bernoulli(_) => &BERNOULLI_,
    }
}

const fn overwriting(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { differentiable: true, ..info(name, signatures) }
}

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

static EXPONENTIAL_: OpInfo = overwriting(
    "exponential_",
    &["exponential_(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor"],
);
static CAUCHY_: OpInfo = overwriting(
    "cauchy_",
    &[
        "cauchy_(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
    ],
);
static LOG_NORMAL_: OpInfo = overwriting(
    "log_normal_",
    &[
        "log_normal_(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
    ],
);
static GEOMETRIC_: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    ..overwriting(
        "geometric_",
        &["geometric_(Tensor self, float p, *, Generator? generator=None) -> Tensor"],
    )
};
static BERNOULLI_: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..overwriting(
        "bernoulli_",
        &["bernoulli_(Tensor self, Tensor|Scalar p=0.5, *, Generator? generator=None) -> Tensor"],
    )
};
static RANDOM_: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..overwriting(
        "random_",
        &[
            "random_(Tensor self, int? to=None, *, Generator? generator=None) -> Tensor",
            "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
        ],
    )
};
static BERNOULLI: OpInfo = OpInfo {
    out: Out::Exact,
    ..composed(
        "bernoulli",
        &["bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor"],
    )
};
static NORMAL: OpInfo = OpInfo {
    out: Out::Exact,
    ..composed(
        "normal",
        &[
            "normal(Tensor|Scalar mean, Tensor|Scalar std=1, *, Generator? generator=None) -> Tensor",
            "normal(float mean, float std, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool requires_grad=False, Layout? layout=None, bool? pin_memory=False) -> Tensor",
        ],
    )
};
static MULTINOMIAL: OpInfo = OpInfo {
    out: Out::Exact,
    ..composed(
        "multinomial",
        &[
            "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[
    &RAND,
    &RANDN,
    &RANDINT,
    &UNIFORM_,
    &NORMAL_,
    &EXPONENTIAL_,
    &CAUCHY_,
    &LOG_NORMAL_,
    &GEOMETRIC_,
    &BERNOULLI_,
    &RANDOM_,
    &BERNOULLI,
    &NORMAL,
    &MULTINOMIAL,
];
