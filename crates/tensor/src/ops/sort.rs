//! Sorting along a dimension: the values in order, and where each came from; the greatest few; the
//! most frequent.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Properties, source_files};

use super::elementwise::output_layout;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::sort as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Outputs [values, indices]. Stable; NaN counts as the largest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) dim: usize,
    pub(crate) descending: bool,
}

impl Operation for Sort {
    fn info(&self) -> &'static OpInfo {
        &SORT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = output_layout(SORT.name, inputs)?;
        let values = Meta { layout: layout.clone(), dtype: inputs[0].dtype };
        let indices = Meta { layout, dtype: DType::I64 };
        Ok(Inferred::Exact(smallvec::smallvec![values, indices]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::sort_along_workspace_bytes(inputs[0], outputs, self.dim)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::sort(launch, self.dim, self.descending)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::sort_workspace_bytes(inputs[0], self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::sort(launch, self.dim, self.descending)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let zeros = Tensor::zeros_on(grad.entry(), &backward.inputs[0])?;
        let result = zeros.scatter_add(self.dim as i64, backward.output(1)?, grad)?;
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static SORT: OpInfo = OpInfo {
    name: "sort",
    family: "sort",
    signatures: &[
        "sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> (Tensor values, Tensor indices)",
    ],
    differentiable: true,
    in_place: false,
    out: Out::Exact,
    cuda: OnCuda::Kernels(&source_files::SORT),
    dtypes: DTypes::ALL,
    ..OpInfo::BARE
};

/// Outputs [values, indices]: the k greatest or least along `dim`, in order; of equal ones the
/// first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopK {
    pub(crate) k: usize,
    pub(crate) dim: usize,
    pub(crate) largest: bool,
}

impl Operation for TopK {
    fn info(&self) -> &'static OpInfo {
        &TOPK
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let mut shape = plimsoll_core::Dims::from(inputs[0].shape());
        if let Some(size) = shape.get_mut(self.dim) {
            *size = self.k;
        }
        let values = Meta::contiguous(&shape, inputs[0].dtype)?;
        let indices = Meta { dtype: DType::I64, ..values.clone() };
        Ok(Inferred::Exact(smallvec::smallvec![values, indices]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::topk_workspace_bytes(inputs[0], self.dim, self.k)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::topk(launch, self.dim, self.k, self.largest)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::topk_workspace_bytes(inputs[0], self.dim, self.k)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::topk(launch, self.dim, self.k, self.largest)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let zeros = Tensor::zeros_on(grad.entry(), &backward.inputs[0])?;
        let result = zeros.scatter_add(self.dim as i64, backward.output(1)?, grad)?;
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Inputs [sorted along `dim`, their positions], outputs [values, indices]: what each line has most
/// often. Its derivative is that of `gather`, by which the method reads the values again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) dim: usize,
}

impl Operation for Mode {
    fn info(&self) -> &'static OpInfo {
        &MODE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = super::norm::kept(inputs[0].shape(), &[self.dim]);
        let values = Meta::contiguous(&shape, inputs[0].dtype)?;
        let indices = Meta { dtype: DType::I64, ..values.clone() };
        Ok(Inferred::Exact(smallvec::smallvec![values, indices]))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::mode(launch, self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::mode(launch, self.dim)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "sort",
        signatures,
        differentiable: true,
        out: Out::Copied,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static TOPK: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::TOPK),
    dtypes: DTypes::NUMBERS,
    ..info(
        "topk",
        &[
            "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        ],
    )
};
static MODE: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::RUNS),
    ..info(
        "mode",
        &["mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"],
    )
};
static MSORT: OpInfo =
    OpInfo { cuda: OnCuda::Composed, ..info("msort", &["msort(Tensor self) -> Tensor"]) };
static ARGSORT: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    differentiable: false,
    out: Out::None,
    ..info(
        "argsort",
        &["argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor"],
    )
};
static KTHVALUE: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    dtypes: DTypes::NUMBERS,
    ..info(
        "kthvalue",
        &[
            "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&SORT, &TOPK, &MODE, &MSORT, &ARGSORT, &KTHVALUE];
