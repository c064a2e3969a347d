//! Copies: `clone`, `contiguous`, `to` another dtype, and `copy_` into an existing tensor.

use std::sync::Arc;

use plimsoll_core::{DType, Layout, Result, broadcast_shapes};

use super::elementwise::output_layout;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::copy as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// How a copy lies in memory.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// Dense, dimensions in the order of the source.
    Preserve,
    /// Row-major.
    Contiguous,
    /// Exactly so.
    Like(Layout),
}

/// A new tensor with the same elements, possibly of another dtype.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) dtype: DType,
    pub(crate) format: Format,
}

impl Operation for Copy {
    fn info(&self) -> &'static OpInfo {
        &CLONE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = match &self.format {
            Format::Preserve => output_layout(CLONE.name, inputs)?,
            Format::Contiguous => Layout::contiguous(inputs[0].shape())?,
            Format::Like(layout) => layout.clone(),
        };
        Ok(Inferred::one(Meta { layout, dtype: self.dtype }))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::copy(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::copy(launch, &launch.inputs[0], &launch.outputs[0])
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?.to(backward.inputs[0].dtype)?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// Overwrites input 0 with input 1, broadcast and converted. Only in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyInto;

impl Operation for CopyInto {
    fn info(&self) -> &'static OpInfo {
        &COPY_
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        // The source must broadcast to the target, which is checked by the target keeping its
        // shape.
        let shape = broadcast_shapes(COPY_.name, &[inputs[0].shape(), inputs[1].shape()])?;
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::copy(&CpuLaunch { inputs: &launch.inputs[1..], ..*launch })
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::copy(launch, &launch.inputs[1], &launch.outputs[0])
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let source = &backward.inputs[1];
        let grad =
            backward.for_input(1, || backward.grad()?.sum_to(source.shape())?.to(source.dtype))?;
        // Nothing of the target's old value is left.
        let old = backward.for_input(0, || backward.grad()?.zeros_like())?;
        Ok(smallvec::smallvec![old, grad])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "copy",
        signatures,
        cuda: OnCuda::Kernels(&source_files::COPY),
        differentiable: true,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static CLONE: OpInfo =
    info("clone", &["clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"]);
pub(crate) static COPY_: OpInfo = OpInfo {
    elementwise: true,
    ..info("copy_", &["copy_(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[&CLONE, &COPY_, &crate::ops::transfer::TO];
