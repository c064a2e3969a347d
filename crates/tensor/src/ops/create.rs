//! Tensors from nothing: filled, counting up, identity; and filling an existing tensor.

use std::sync::Arc;

use plimsoll_core::{Result, Scalar};

use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::fill as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// What new elements are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Full(Scalar),
    Arange { start: Scalar, step: Scalar },
    Eye,
}

/// A new tensor.
#[derive(Clone, Debug)]
pub(crate) struct Create {
    pub(crate) meta: Meta,
    pub(crate) content: Content,
}

impl Operation for Create {
    fn info(&self) -> &'static OpInfo {
        match self.content {
            Content::Full(_) => &FULL,
            Content::Arange { .. } => &ARANGE,
            Content::Eye => &EYE,
        }
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(self.meta.clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match self.content {
            Content::Full(value) => cpu::fill(launch, value),
            Content::Arange { start, step } => cpu::arange(launch, start, step),
            Content::Eye => cpu::eye(launch),
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        match self.content {
            Content::Full(value) => cuda::fill(launch, value),
            Content::Arange { start, step } => cuda::arange(launch, start, step),
            Content::Eye => cuda::eye(launch),
        }
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// Overwrites input 0 with one value. Only in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill(pub(crate) Scalar);

impl Operation for Fill {
    fn info(&self) -> &'static OpInfo {
        &FILL_
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(inputs[0].clone()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::fill(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::fill(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        Ok(smallvec::smallvec![Some(backward.grad()?.zeros_like()?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "create",
        signatures,
        cuda: OnCuda::Kernels(&source_files::FILL),
        differentiable: false,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static FULL: OpInfo = info(
    "full",
    &["full(int[] size, Scalar fill_value, *, DType? dtype=None, Device? device=None) -> Tensor"],
);
static ARANGE: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    ..info(
        "arange",
        &[
            "arange(Scalar start, Scalar end, Scalar step=1, *, DType? dtype=None, Device? device=None) -> Tensor",
        ],
    )
};
static EYE: OpInfo =
    info("eye", &["eye(int n, *, DType? dtype=None, Device? device=None) -> Tensor"]);
static FILL_: OpInfo = OpInfo {
    differentiable: true,
    ..info("fill_", &["fill_(Tensor self, Tensor|Scalar value) -> Tensor"])
};

/// Made of `clone` and `fill_`, or of a copy of what fills it.
static FILL: OpInfo = OpInfo {
    differentiable: true,
    cuda: OnCuda::Composed,
    ..info("fill", &["fill(Tensor self, Tensor|Scalar value) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[&FULL, &ARANGE, &EYE, &FILL_, &FILL];
