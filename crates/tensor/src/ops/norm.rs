//! Norms of vectors, the logarithm of a sum of exponentials, and the rows of what is composed of
//! them.

use std::sync::Arc;

use plimsoll_core::{Dims, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::{self, CudaLaunch, Fold};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::{logsumexp as cpu_logsumexp, reduce as cpu};
use plimsoll_kernels::{CpuLaunch, Meta};

/// The shape with `dims` of size 1.
pub(super) fn kept(shape: &[usize], dims: &[usize]) -> Dims {
    (0..shape.len()).map(|dim| if dims.contains(&dim) { 1 } else { shape[dim] }).collect()
}

/// The norm of order `order` over `dims`, which stay with size 1.
#[derive(Clone, Debug)]
pub(crate) struct VectorNorm {
    pub(crate) order: f64,
    pub(crate) dims: Dims,
}

impl Operation for VectorNorm {
    fn info(&self) -> &'static OpInfo {
        &VECTOR_NORM
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = inputs[0].shape();
        let empty = self.dims.iter().any(|&dim| shape[dim] == 0);
        if empty && (self.order < 0.0 || self.order == f64::INFINITY) {
            return Err(Error::shape(
                VECTOR_NORM.name,
                format!("shape {shape:?} has no elements, and order {} needs some", self.order),
            ));
        }
        Ok(Inferred::one(Meta::contiguous(&kept(shape, &self.dims), inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::output(0))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::vector_norm(launch, &self.dims, self.order)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::reduce_workspace_bytes(inputs[0], Fold::Norm(self.order), &self.dims)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::reduce(launch, Fold::Norm(self.order), &self.dims)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, x, norm) = (backward.grad()?, backward.input(0)?, backward.output(0)?);
        let p = self.order;
        // Where the norm is 0 there is no direction; PyTorch takes 0.
        let over_norm = |numerator: &Tensor, denominator: &Tensor| {
            Tensor::where_(&norm.eq(0.0)?, 0.0, &numerator.div(denominator)?)
        };
        let result = if p == 0.0 {
            x.zeros_like()?
        } else if p == 1.0 {
            grad.mul(&x.sign()?)?
        } else if p == 2.0 {
            grad.mul(&over_norm(x, norm)?)?
        } else if p.is_infinite() {
            let is_it = x.abs()?.eq(norm)?.to(x.dtype())?;
            let dims: SmallVec<[i64; 6]> = self.dims.iter().map(|&dim| dim as i64).collect();
            let count =
                if dims.is_empty() { is_it.clone() } else { is_it.sum_over(&dims, true)? };
            x.sign()?.mul(&is_it)?.mul(&grad.div(&count)?)?
        } else if p < 1.0 {
            let slope = x.sign()?.mul(&x.abs()?.pow(p - 1.0)?)?;
            let slope = Tensor::where_(&x.eq(0.0)?, 0.0, &slope)?;
            slope.mul(&grad.mul(&norm.pow(1.0 - p)?)?)?
        } else if p < 2.0 {
            let slope = x.sign()?.mul(&x.abs()?.pow(p - 1.0)?)?;
            slope.mul(&over_norm(grad, &norm.pow(p - 1.0)?)?)?
        } else {
            let slope = x.mul(&x.abs()?.pow(p - 2.0)?)?;
            slope.mul(&over_norm(grad, &norm.pow(p - 1.0)?)?)?
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// log(sum(exp(x))) along `dim`, which stays with size 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSumExp {
    pub(crate) dim: usize,
}

impl Operation for LogSumExp {
    fn info(&self) -> &'static OpInfo {
        &LOGSUMEXP
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = kept(inputs[0].shape(), &[self.dim]);
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::output(0))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu_logsumexp::logsumexp(launch, self.dim)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::reduce_workspace_bytes(inputs[0], Fold::LogSumExp, &[self.dim])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::reduce(launch, Fold::LogSumExp, &[self.dim])
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let parts = backward.input(0)?.sub(backward.output(0)?)?.exp()?;
        Ok(smallvec::smallvec![Some(backward.grad()?.mul(&parts)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "norm",
        signatures,
        differentiable: true,
        out: Out::Copied,
        dtypes: DTypes::FLOATS,
        ..OpInfo::BARE
    }
}

static LOGSUMEXP: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::REDUCE),
    ..info("logsumexp", &["logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor"])
};
static VECTOR_NORM: OpInfo = OpInfo {
    home: Home::Linalg,
    cuda: OnCuda::Kernels(&source_files::REDUCE),
    ..info(
        "linalg_vector_norm",
        &[
            "linalg_vector_norm(Tensor self, float ord=2, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static MATRIX_NORM: OpInfo = OpInfo {
    home: Home::Linalg,
    cuda: OnCuda::Composed,
    ..info(
        "linalg_matrix_norm",
        &[
            "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, DType? dtype=None) -> Tensor",
            "linalg_matrix_norm(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static LINALG_NORM: OpInfo = OpInfo {
    home: Home::Linalg,
    cuda: OnCuda::Composed,
    ..info(
        "linalg_norm",
        &[
            "linalg_norm(Tensor self, Scalar? ord=None, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
            "linalg_norm(Tensor self, str ord, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static NORM: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    ..info(
        "norm",
        &[
            "norm(Tensor self, Scalar p, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
            "norm(Tensor self, str p='fro', int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static DIST: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    out: Out::None,
    ..info("dist", &["dist(Tensor self, Tensor other, float p=2) -> Tensor"])
};
static RENORM: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    in_place: true,
    ..info("renorm", &["renorm(Tensor self, float p, int dim, float maxnorm) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] =
    &[&LOGSUMEXP, &VECTOR_NORM, &MATRIX_NORM, &LINALG_NORM, &NORM, &DIST, &RENORM];
