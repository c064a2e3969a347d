//! Reductions over some dimensions: sums, extremes, where the extremes are, whether any or all
//! hold.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::Properties;
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::{self, CudaLaunch, Fold};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::reduce as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Which reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    NanSum,
    Mean,
    Prod,
    CountNonzero,
    Amax,
    Amin,
    Argmax,
    Argmin,
    Any,
    All,
}

impl Reduction {
    /// The kernel's name for it on CUDA.
    fn fold(self) -> Fold {
        match self {
            Reduction::Sum => Fold::Sum,
            Reduction::NanSum => Fold::NanSum,
            Reduction::Mean => Fold::Mean,
            Reduction::Prod => Fold::Product,
            Reduction::CountNonzero => Fold::CountNonzero,
            Reduction::Amax => Fold::Amax,
            Reduction::Amin => Fold::Amin,
            Reduction::Argmax => Fold::Argmax,
            Reduction::Argmin => Fold::Argmin,
            Reduction::Any => Fold::Any,
            Reduction::All => Fold::All,
        }
    }
}

/// A reduction over `dims`, each once; all of them if the list names all.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    pub(crate) reduction: Reduction,
    pub(crate) dims: Dims,
    pub(crate) keepdim: bool,
    /// The dtype of the result.
    pub(crate) dtype: DType,
}

impl Operation for Reduce {
    fn info(&self) -> &'static OpInfo {
        match self.reduction {
            Reduction::Sum => &SUM,
            Reduction::NanSum => &NANSUM,
            Reduction::Mean => &MEAN,
            Reduction::Prod => &PROD,
            Reduction::CountNonzero => &COUNT_NONZERO,
            Reduction::Amax => &AMAX,
            Reduction::Amin => &AMIN,
            Reduction::Argmax => &ARGMAX,
            Reduction::Argmin => &ARGMIN,
            Reduction::Any => &ANY,
            Reduction::All => &ALL,
        }
    }

    fn node_name(&self, inputs: &[Meta]) -> Option<&'static str> {
        let is_whole =
            !self.keepdim && inputs.first().is_some_and(|x| x.shape().len() == self.dims.len());
        match self.reduction {
            Reduction::Sum if !is_whole => Some("SumBackward1"),
            Reduction::Mean if !is_whole => Some("MeanBackward1"),
            Reduction::Prod if !is_whole => Some("ProdBackward1"),
            _ => None,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = inputs[0].shape();
        self.check_not_empty(shape)?;
        let reduced: Dims = (0..shape.len())
            .filter(|dim| self.keepdim || !self.dims.contains(dim))
            .map(|dim| if self.dims.contains(&dim) { 1 } else { shape[dim] })
            .collect();
        // Mixed precision may have cast the input since the result's dtype was chosen.
        let keeps = !matches!(
            self.reduction,
            Reduction::Argmax
                | Reduction::Argmin
                | Reduction::Any
                | Reduction::All
                | Reduction::CountNonzero
        );
        let dtype = inputs[0].dtype;
        let dtype = if keeps && dtype.is_float() { dtype } else { self.dtype };
        Ok(Inferred::one(Meta::contiguous(&reduced, dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        match self.reduction {
            Reduction::Amax | Reduction::Amin => Saves::input(0).and(Saves::output(0)),
            Reduction::Prod | Reduction::NanSum => Saves::input(0),
            _ => Saves::NOTHING,
        }
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::workspace_bytes(inputs, outputs)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match self.reduction {
            Reduction::Sum => cpu::sum(launch, &self.dims),
            Reduction::NanSum if launch.inputs[0].dtype().is_float() => {
                cpu::nansum(launch, &self.dims)
            }
            Reduction::NanSum => cpu::sum(launch, &self.dims),
            Reduction::Prod => cpu::prod(launch, &self.dims),
            Reduction::CountNonzero => cpu::count_nonzero(launch, &self.dims),
            Reduction::Mean => cpu::mean(launch, &self.dims),
            Reduction::Amax => cpu::amax(launch, &self.dims),
            Reduction::Amin => cpu::amin(launch, &self.dims),
            Reduction::Argmax => cpu::argmax(launch, &self.dims),
            Reduction::Argmin => cpu::argmin(launch, &self.dims),
            Reduction::Any => cpu::any(launch, &self.dims),
            Reduction::All => cpu::all(launch, &self.dims),
        }
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::reduce_workspace_bytes(inputs[0], self.reduction.fold(), &self.dims)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::reduce(launch, self.reduction.fold(), &self.dims)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let input = &backward.inputs[0];
        let grad = self.stretch(backward.grad()?, input)?;
        let grad = match self.reduction {
            Reduction::Sum => grad.to(input.dtype)?,
            Reduction::NanSum => {
                let x = backward.input(0)?;
                grad.mul(&x.eq(x)?.to(input.dtype)?)?
            }
            Reduction::Prod => grad.mul(&self.products_of_others(backward.input(0)?)?)?,
            Reduction::Mean => {
                let count: usize = self.dims.iter().map(|&dim| input.shape()[dim]).product();
                grad.div(count as f64)?
            }
            _ => {
                // Elements that share the extreme share its gradient evenly, as in PyTorch.
                let extreme = self.stretch(backward.output(0)?, input)?;
                let mask = backward.input(0)?.eq(&extreme)?.to(input.dtype)?;
                let dims: SmallVec<[i64; 6]> = self.dims.iter().map(|&dim| dim as i64).collect();
                let count =
                    if dims.is_empty() { mask.clone() } else { mask.sum_over(&dims, true)? };
                grad.mul(&mask)?.div(&count)?
            }
        };
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

impl Reduce {
    /// PyTorch's name.
    pub(crate) fn name(&self) -> &'static str {
        self.info().name
    }

    /// A reduced tensor in the input's shape again, by strides of 0.
    fn stretch(&self, reduced: &Tensor, input: &Meta) -> Result<Tensor> {
        let mut reduced = reduced.clone();
        if !self.keepdim {
            let mut dims = self.dims.clone();
            dims.sort_unstable();
            for &dim in &dims {
                reduced = reduced.unsqueeze(dim as i64)?;
            }
        }
        let sizes: SmallVec<[i64; 6]> = input.shape().iter().map(|&size| size as i64).collect();
        reduced.expand(&sizes)
    }

    /// For each element the product of all others under the same result: of those before times
    /// those after, so that zeros need no division.
    fn products_of_others(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() == 0 {
            return x.ones_like();
        }
        let shape = x.shape();
        let (x, dim) = match *self.dims {
            [dim] => (x.clone(), dim as i64),
            _ => (x.reshape(&[-1])?, 0),
        };
        let products = x.products_before(dim, false)?.mul(&x.products_before(dim, true)?)?;
        let sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        products.reshape(&sizes)
    }

    /// An extreme of nothing does not exist.
    fn check_not_empty(&self, shape: &[usize]) -> Result<()> {
        let needs_elements = matches!(
            self.reduction,
            Reduction::Amax | Reduction::Amin | Reduction::Argmax | Reduction::Argmin
        );
        match self.dims.iter().find(|&&dim| shape[dim] == 0) {
            Some(dim) if needs_elements => Err(Error::index(
                self.info().name,
                format!(
                    "dimension {dim} of shape {shape:?} is empty, and an extreme of nothing does not exist"
                ),
            )),
            _ => Ok(()),
        }
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "reduce",
        signatures,
        differentiable: true,
        in_place: false,
        out: Out::Cast,
        cuda: OnCuda::Kernels(&source_files::REDUCE),
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static SUM: OpInfo = OpInfo {
    ..info(
        "sum",
        &["sum(Tensor self, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor"],
    )
};
static MEAN: OpInfo = OpInfo {
    dtypes: DTypes::FLOATS,
    ..info(
        "mean",
        &["mean(Tensor self, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor"],
    )
};
static NANSUM: OpInfo = OpInfo {
    ..info(
        "nansum",
        &[
            "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static NANMEAN: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    dtypes: DTypes::FLOATS,
    ..info(
        "nanmean",
        &[
            "nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ],
    )
};
static PROD: OpInfo = OpInfo {
    ..info(
        "prod",
        &["prod(Tensor self, int? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor"],
    )
};
static COUNT_NONZERO: OpInfo = OpInfo {
    differentiable: false,
    out: Out::None,
    ..info("count_nonzero", &["count_nonzero(Tensor self, int[]? dim=None) -> Tensor"])
};
static SUM_TO_SIZE: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    out: Out::None,
    ..info("sum_to_size", &["sum_to_size(Tensor self, int[] size) -> Tensor"])
};
static AMAX: OpInfo = OpInfo {
    out: Out::Exact,
    ..info("amax", &["amax(Tensor self, int[]? dim=[], bool keepdim=False) -> Tensor"])
};
static AMIN: OpInfo = OpInfo {
    out: Out::Exact,
    ..info("amin", &["amin(Tensor self, int[]? dim=[], bool keepdim=False) -> Tensor"])
};
static ARGMAX: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    differentiable: false,
    out: Out::Exact,
    ..info("argmax", &["argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"])
};
static ARGMIN: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    differentiable: false,
    out: Out::Exact,
    ..info("argmin", &["argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"])
};
static ANY: OpInfo = OpInfo {
    differentiable: false,
    out: Out::Exact,
    ..info("any", &["any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"])
};
static ALL: OpInfo = OpInfo {
    differentiable: false,
    out: Out::Exact,
    ..info("all", &["all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[
    &SUM,
    &NANSUM,
    &MEAN,
    &NANMEAN,
    &PROD,
    &COUNT_NONZERO,
    &SUM_TO_SIZE,
    &AMAX,
    &AMIN,
    &ARGMAX,
    &ARGMIN,
    &ANY,
    &ALL,
];
