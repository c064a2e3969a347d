//! Where a tensor is not zero: the result's size is known only from the data.

use std::sync::Arc;

use plimsoll_core::{DType, Layout, Result};
use plimsoll_cuda::{Properties, source_files};

use super::info;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Inferred, Metas, Needs, OnCuda, OpInfo, Operation};
use plimsoll_kernels::cpu::index as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// The positions of the elements that are not zero, a row each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonzero;

impl Operation for Nonzero {
    fn info(&self) -> &'static OpInfo {
        &NONZERO
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::AtMost(rows(inputs[0].layout.numel(), inputs[0].shape().len())?))
    }

    fn measure(&self, launch: &CpuLaunch<'_>) -> Result<Metas> {
        rows(cpu::nonzero_count(launch)?, launch.inputs[0].shape().len())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::nonzero(launch)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::nonzero_workspace_bytes(inputs[0])
    }

    fn cuda_measure(&self, launch: &CudaLaunch<'_>) -> Result<Metas> {
        rows(cuda::nonzero_count(launch)?, launch.inputs[0].shape().len())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::nonzero(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

fn rows(count: usize, rank: usize) -> Result<Metas> {
    // PyTorch's order: the positions along one dimension lie side by side.
    let layout = Layout::contiguous(&[rank, count]).and_then(|layout| layout.transpose(0, 1));
    let layout = layout.map_err(|e| e.in_operation(NONZERO.name))?;
    Ok(smallvec::smallvec![Meta { layout, dtype: DType::I64 }])
}

pub(super) static NONZERO: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::NONZERO),
    ..info("nonzero", &["nonzero(Tensor self, *, bool as_tuple=False) -> Tensor"])
};
