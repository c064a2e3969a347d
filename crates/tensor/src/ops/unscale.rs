//! Scaled gradients: unscaling all of them with a look for what is not finite, and the scale after
//! a step. They write in place and have no derivative.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Metas, Needs, OnCuda, OpInfo, Operation};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::optim as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Input: what the gradients are multiplied by. Written: the gradients, and whether one was not
/// finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unscale;

impl Operation for Unscale {
    fn info(&self) -> &'static OpInfo {
        &UNSCALE_
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::Exact(Metas::new()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::unscale(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unscale(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Input: whether the step was skipped. Written: the scale, and the steps since it changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateScale(pub(crate) cpu::UpdateScale);

impl Operation for UpdateScale {
    fn info(&self) -> &'static OpInfo {
        &UPDATE_SCALE_
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::Exact(Metas::new()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::update_scale(launch, &self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::update_scale(launch, &self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Not in the registry: they make nothing, and their Python form is written by hand.
const fn info(name: &'static str) -> OpInfo {
    OpInfo {
        name,
        family: "optim",
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::UNSCALE),
        ..OpInfo::BARE
    }
}

static UNSCALE_: OpInfo = info("amp_foreach_non_finite_check_and_unscale_");
static UPDATE_SCALE_: OpInfo = info("amp_update_scale_");
