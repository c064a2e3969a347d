//! The rows of `max`, `min` and `aminmax`, which are composed of reductions and of `gather`; and an
//! element that was chosen among all.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::copy as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs [an element, the tensor that it was chosen from]; output the element. Elements that equal
/// it share its gradient evenly, NaNs that of a NaN, as in PyTorch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// What chose.
    pub(crate) by: &'static OpInfo,
}

impl Operation for Chosen {
    fn info(&self) -> &'static OpInfo {
        self.by
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(inputs[0].clone()))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1).and(Saves::output(0))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::copy(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::copy(launch, &launch.inputs[0], &launch.outputs[0])
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let to_all = backward.for_input(1, || {
            let (x, chosen) = (backward.input(1)?, backward.output(0)?);
            let both_nan = x.isnan()?.logical_and(&chosen.isnan()?)?;
            let shares = x.eq(chosen)?.logical_or(&both_nan)?.to(x.dtype())?;
            shares.mul(&backward.grad()?.div(&shares.sum()?)?)
        })?;
        Ok(smallvec::smallvec![None, to_all])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "extremes",
        signatures,
        differentiable: true,
        out: Out::Copied,
        cuda: OnCuda::Composed,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

pub(crate) static MAX: OpInfo = info(
    "max",
    &[
        "max(Tensor self) -> Tensor",
        "max(Tensor self, Tensor other) -> Tensor",
        "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ],
);
pub(crate) static MIN: OpInfo = info(
    "min",
    &[
        "min(Tensor self) -> Tensor",
        "min(Tensor self, Tensor other) -> Tensor",
        "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ],
);
static AMINMAX: OpInfo = OpInfo {
    out: Out::Exact,
    ..info(
        "aminmax",
        &["aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&MAX, &MIN, &AMINMAX];
