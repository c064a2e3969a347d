//! Steps of optimizers: one operation over all parameters, in place. They have no derivative.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Metas, Needs, OnCuda, OpInfo, Operation};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::optim as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs and what is written beside them are those of the CPU kernel (`cpu::AdamW::operands`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamW(pub(crate) cpu::AdamW);

impl Operation for AdamW {
    fn info(&self) -> &'static OpInfo {
        &FUSED_ADAMW_
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::Exact(Metas::new()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::adamw(launch, &self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::adamw(launch, &self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Not in the registry: it makes nothing, and its Python form is written by hand.
static FUSED_ADAMW_: OpInfo = OpInfo {
    name: "fused_adamw_",
    family: "optim",
    dtypes: DTypes::FLOATS,
    cuda: OnCuda::Kernels(&source_files::OPTIM),
    ..OpInfo::BARE
};
