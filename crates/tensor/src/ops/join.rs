//! Joining tensors along a dimension: `cat`, and the rows of what is made of it.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};

use super::channels_last::laid_out_like;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::join as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// All inputs one after another along `dim`, converted to `dtype`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cat {
    pub(crate) dim: usize,
    pub(crate) dtype: DType,
}

/// PyTorch skips tensors of shape [0] whatever the others' rank, for the sake of old programs.
pub(crate) fn is_skipped(shape: &[usize]) -> bool {
    shape == [0]
}

impl Operation for Cat {
    fn info(&self) -> &'static OpInfo {
        &CAT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let Some(first) = inputs.iter().find(|meta| !is_skipped(meta.shape())) else {
            return Ok(Inferred::one(Meta::contiguous(&[0], self.dtype)?));
        };
        let mut shape = Dims::from(first.shape());
        shape[self.dim] = 0;
        for (index, meta) in inputs.iter().enumerate().filter(|(_, m)| !is_skipped(m.shape())) {
            let fits = meta.shape().len() == shape.len()
                && (0..shape.len()).all(|dim| dim == self.dim || meta.shape()[dim] == shape[dim]);
            if !fits {
                return Err(Error::shape(
                    CAT.name,
                    format!(
                        "tensor {index} of shape {:?} cannot be joined with shape {:?} along dimension {}: all \
                         other sizes must be equal",
                        meta.shape(),
                        first.shape(),
                        self.dim
                    ),
                ));
            }
            shape[self.dim] = shape[self.dim]
                .checked_add(meta.shape()[self.dim])
                .ok_or_else(|| Error::shape(CAT.name, "the joined size overflows"))?;
        }
        let meta = laid_out_like(inputs, &shape, self.dtype);
        Ok(Inferred::one(meta.map_err(|e| e.in_operation(CAT.name))?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cat(launch, self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::cat(launch, self.dim)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let mut start = 0;
        let mut grads = Grads::new();
        for (index, input) in backward.inputs.iter().enumerate() {
            if is_skipped(input.shape()) {
                grads.push(None);
                continue;
            }
            let length = input.shape()[self.dim] as i64;
            grads.push(backward.for_input(index, || {
                grad.narrow(self.dim as i64, start, length)?.to(input.dtype)
            })?);
            start += length;
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static CAT: OpInfo = OpInfo {
    name: "cat",
    family: "join",
    signatures: &["cat(Tensor[] tensors, int dim=0) -> Tensor"],
    differentiable: true,
    in_place: false,
    out: Out::Cast,
    cuda: OnCuda::Kernels(&source_files::COPY),
    ..OpInfo::BARE
};
const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { name, signatures, cuda: OnCuda::Composed, ..CAT }
}

/// Made of `unsqueeze` and `cat`.
static STACK: OpInfo =
    OpInfo { name: "stack", signatures: &["stack(Tensor[] tensors, int dim=0) -> Tensor"], ..CAT };
static CONCAT: OpInfo = composed("concat", &["concat(Tensor[] tensors, int dim=0) -> Tensor"]);
static CONCATENATE: OpInfo =
    composed("concatenate", &["concatenate(Tensor[] tensors, int dim=0) -> Tensor"]);
static HSTACK: OpInfo = composed("hstack", &["hstack(Tensor[] tensors) -> Tensor"]);
static VSTACK: OpInfo = composed("vstack", &["vstack(Tensor[] tensors) -> Tensor"]);
static ROW_STACK: OpInfo = composed("row_stack", &["row_stack(Tensor[] tensors) -> Tensor"]);
static DSTACK: OpInfo = composed("dstack", &["dstack(Tensor[] tensors) -> Tensor"]);
static COLUMN_STACK: OpInfo =
    composed("column_stack", &["column_stack(Tensor[] tensors) -> Tensor"]);
static BLOCK_DIAG: OpInfo = OpInfo {
    out: Out::None,
    ..composed("block_diag", &["block_diag(Tensor[] tensors) -> Tensor"])
};
static CARTESIAN_PROD: OpInfo = OpInfo {
    out: Out::None,
    ..composed("cartesian_prod", &["cartesian_prod(Tensor[] tensors) -> Tensor"])
};
static COMBINATIONS: OpInfo = OpInfo {
    out: Out::None,
    ..composed(
        "combinations",
        &["combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor"],
    )
};
static MESHGRID: OpInfo = OpInfo {
    out: Out::None,
    ..composed("meshgrid", &["meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]"])
};

pub(crate) static OPS: &[&OpInfo] = &[
    &CAT,
    &STACK,
    &CONCAT,
    &CONCATENATE,
    &HSTACK,
    &VSTACK,
    &ROW_STACK,
    &DSTACK,
    &COLUMN_STACK,
    &BLOCK_DIAG,
    &CARTESIAN_PROD,
    &COMBINATIONS,
    &MESHGRID,
];
