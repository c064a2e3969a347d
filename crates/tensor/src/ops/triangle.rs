//! Triangles of matrices, and matrices made of diagonals.

use std::sync::Arc;

use plimsoll_core::{Error, Result};

use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use crate::prepare::apply_one;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::triangle as cpu;
pub(crate) use plimsoll_kernels::cpu::triangle::Triangle;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Matrices with zeros on one side of a diagonal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepTriangle {
    pub(crate) side: Triangle,
    pub(crate) diagonal: i64,
}

impl Operation for KeepTriangle {
    fn info(&self) -> &'static OpInfo {
        match self.side {
            Triangle::Lower => &TRIL,
            Triangle::Upper => &TRIU,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let name = self.info().name;
        if inputs[0].shape().len() < 2 {
            return Err(Error::shape(
                name,
                format!("matrices have two dimensions, and shape {:?} has not", inputs[0].shape()),
            ));
        }
        Ok(Inferred::one(Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::triangle(launch, self.side, self.diagonal)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::triangle(launch, self.side, self.diagonal)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = apply_one(self, &[backward.grad()?], Site::in_force())?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "triangle",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        ..OpInfo::BARE
    }
}

const fn kernel(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        in_place: true,
        out: Out::Exact,
        elementwise: true,
        cuda: OnCuda::Kernels(&source_files::REARRANGE),
        ..info(name, signatures)
    }
}

static TRIL: OpInfo = kernel("tril", &["tril(Tensor self, int diagonal=0) -> Tensor"]);
static TRIU: OpInfo = kernel("triu", &["triu(Tensor self, int diagonal=0) -> Tensor"]);
static DIAG: OpInfo =
    OpInfo { out: Out::Exact, ..info("diag", &["diag(Tensor self, int diagonal=0) -> Tensor"]) };
static DIAG_EMBED: OpInfo = info(
    "diag_embed",
    &["diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"],
);
static DIAGFLAT: OpInfo = info("diagflat", &["diagflat(Tensor self, int offset=0) -> Tensor"]);

pub(crate) static OPS: &[&OpInfo] = &[&TRIL, &TRIU, &DIAG, &DIAG_EMBED, &DIAGFLAT];
