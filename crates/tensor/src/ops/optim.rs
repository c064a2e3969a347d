//! Steps of optimizers: one operation over all parameters, in place. They have no derivative.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Metas, Needs, OnCuda, OpInfo, Operation};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::optim as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs and what is written beside them are those of the CPU kernel (`cpu::Step::operands`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step(pub(crate) cpu::Step);

impl Step {
    /// The operation's name.
    pub(crate) fn name(&self) -> &'static str {
        self.info().name
    }
}

impl Operation for Step {
    fn info(&self) -> &'static OpInfo {
        match self.0.rule {
            cpu::Rule::Sgd(_) => &FUSED_SGD_,
            cpu::Rule::Adam(_) if self.0.decoupled => &FUSED_ADAMW_,
            cpu::Rule::Adam(_) => &FUSED_ADAM_,
            cpu::Rule::NAdam(_) => &FUSED_NADAM_,
            cpu::Rule::RAdam(_) => &FUSED_RADAM_,
            cpu::Rule::Adagrad(_) => &FUSED_ADAGRAD_,
            cpu::Rule::Adadelta(_) => &FUSED_ADADELTA_,
            cpu::Rule::RmsProp(_) => &FUSED_RMSPROP_,
            cpu::Rule::Rprop(_) => &FUSED_RPROP_,
            cpu::Rule::Adamax(_) => &FUSED_ADAMAX_,
            cpu::Rule::Lion(_) => &FUSED_LION_,
        }
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::Exact(Metas::new()))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::step(launch, &self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::optimizer_step(launch, &self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Not in the registry: they make nothing, and their Python form is written by hand.
const fn step(name: &'static str) -> OpInfo {
    OpInfo {
        name,
        family: "optim",
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::OPTIM),
        ..OpInfo::BARE
    }
}

static FUSED_SGD_: OpInfo = step("fused_sgd_");
static FUSED_ADAM_: OpInfo = step("fused_adam_");
static FUSED_ADAMW_: OpInfo = step("fused_adamw_");
static FUSED_NADAM_: OpInfo = step("fused_nadam_");
static FUSED_RADAM_: OpInfo = step("fused_radam_");
static FUSED_ADAGRAD_: OpInfo = step("fused_adagrad_");
static FUSED_ADADELTA_: OpInfo = step("fused_adadelta_");
static FUSED_RMSPROP_: OpInfo = step("fused_rmsprop_");
static FUSED_RPROP_: OpInfo = step("fused_rprop_");
static FUSED_ADAMAX_: OpInfo = step("fused_adamax_");
static FUSED_LION_: OpInfo = step("fused_lion_");
