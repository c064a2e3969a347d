//! The norms of many tensors in one operation, for clipping. It has no derivative.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_cuda::{Properties, source_files};
use plimsoll_kernels::cpu::optim as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Metas, Needs, OnCuda, OpInfo, Operation};

/// Inputs: tensors of one dtype. Output: a vector with the norm of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms;

impl Operation for Norms {
    fn info(&self) -> &'static OpInfo {
        &NORMS
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let mut outputs = Metas::new();
        outputs.push(Meta::contiguous(&[inputs.len()], inputs[0].dtype)?);
        Ok(Inferred::Exact(outputs))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::norms(launch)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::norms_workspace_bytes(inputs)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::norms(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Not in the registry: PyTorch's `_foreach_norm` gives a list.
static NORMS: OpInfo = OpInfo {
    name: "foreach_norm",
    family: "optim",
    dtypes: DTypes::FLOATS,
    cuda: OnCuda::Kernels(&source_files::NORMS),
    ..OpInfo::BARE
};
