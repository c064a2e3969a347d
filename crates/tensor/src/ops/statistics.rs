//! Variance and standard deviation, and the rows of statistics that are composed of other
//! operations.

use std::sync::Arc;

use plimsoll_core::{Dims, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::norm::kept;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch, Fold};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::reduce as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// The variance over `dims`, which stay with size 1: the sum of squares around the mean over the
/// count less `correction`; its square root if `root`.
#[derive(Clone, Debug)]
pub(crate) struct Variance {
    pub(crate) dims: Dims,
    pub(crate) correction: f64,
    pub(crate) root: bool,
}

impl Variance {
    fn fold(&self) -> Fold {
        Fold::Variance { correction: self.correction, root: self.root }
    }
}

impl Operation for Variance {
    fn info(&self) -> &'static OpInfo {
        if self.root { &STD } else { &VAR }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = kept(inputs[0].shape(), &self.dims);
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::output(0).when(self.root))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::variance(launch, &self.dims, self.correction, self.root)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::reduce_workspace_bytes(inputs[0], self.fold(), &self.dims)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::reduce(launch, self.fold(), &self.dims)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (mut grad, x) = (backward.grad()?.clone(), backward.input(0)?);
        if self.root {
            let out = backward.output(0)?;
            // Elements that are all alike have no direction; PyTorch takes 0.
            grad = Tensor::where_(&out.eq(0.0)?, 0.0, &grad.div(&out.mul(2.0)?)?)?;
        }
        let dims: SmallVec<[i64; 6]> = self.dims.iter().map(|&dim| dim as i64).collect();
        let count: usize = self.dims.iter().map(|&dim| x.shape()[dim]).product();
        let mean = if dims.is_empty() { x.clone() } else { x.mean_over(&dims, true)? };
        let scaled = grad.mul(2.0 / (count as f64 - self.correction))?;
        Ok(smallvec::smallvec![Some(scaled.mul(&x.sub(&mean)?)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "statistics",
        signatures,
        differentiable: true,
        out: Out::Copied,
        cuda: OnCuda::Kernels(&source_files::REDUCE),
        dtypes: DTypes::FLOATS,
        ..OpInfo::BARE
    }
}

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

static VAR: OpInfo = info(
    "var",
    &[
        "var(Tensor self, bool unbiased=True) -> Tensor",
        "var(Tensor self, int[]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor",
        "var(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    ],
);
static STD: OpInfo = info(
    "std",
    &[
        "std(Tensor self, bool unbiased=True) -> Tensor",
        "std(Tensor self, int[]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor",
        "std(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    ],
);
static VAR_MEAN: OpInfo = OpInfo {
    out: Out::None,
    ..composed(
        "var_mean",
        &[
            "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
            "var_mean(Tensor self, int[]? dim=None, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
            "var_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        ],
    )
};
static STD_MEAN: OpInfo = OpInfo {
    out: Out::None,
    ..composed(
        "std_mean",
        &[
            "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
            "std_mean(Tensor self, int[]? dim=None, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
            "std_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        ],
    )
};
static COV: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::NUMBERS,
    ..composed(
        "cov",
        &[
            "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        ],
    )
};
static CORRCOEF: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::NUMBERS,
    ..composed("corrcoef", &["corrcoef(Tensor self) -> Tensor"])
};
pub(crate) static MEDIAN: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    ..composed(
        "median",
        &[
            "median(Tensor self) -> Tensor",
            "median(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        ],
    )
};
pub(crate) static NANMEDIAN: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    ..composed(
        "nanmedian",
        &[
            "nanmedian(Tensor self) -> Tensor",
            "nanmedian(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        ],
    )
};
static QUANTILE: OpInfo = OpInfo {
    dtypes: DTypes::of(&[plimsoll_core::DType::F32, plimsoll_core::DType::F64]),
    ..composed(
        "quantile",
        &[
            "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
            "quantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        ],
    )
};
static NANQUANTILE: OpInfo = OpInfo {
    dtypes: DTypes::of(&[plimsoll_core::DType::F32, plimsoll_core::DType::F64]),
    ..composed(
        "nanquantile",
        &[
            "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
            "nanquantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[
    &VAR,
    &STD,
    &VAR_MEAN,
    &STD_MEAN,
    &COV,
    &CORRCOEF,
    &MEDIAN,
    &NANMEDIAN,
    &QUANTILE,
    &NANQUANTILE,
];
