//! Scans along a dimension: running sums, products, logarithms of sums of exponentials, extremes;
//! and the linear recurrence that the derivatives of products are made of.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Properties, source_files};

use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::scan as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// A scan of the input along `dim`, from the end if `reverse`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cumulative {
    pub(crate) scan: cpu::Scan,
    pub(crate) dim: usize,
    pub(crate) reverse: bool,
}

impl Operation for Cumulative {
    fn info(&self) -> &'static OpInfo {
        match self.scan {
            cpu::Scan::Sum => &CUMSUM,
            cpu::Scan::Product => &CUMPROD,
            cpu::Scan::LogSumExp => &LOGCUMSUMEXP,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        match self.scan {
            cpu::Scan::Sum => Saves::NOTHING,
            cpu::Scan::Product => Saves::input(0),
            cpu::Scan::LogSumExp => Saves::input(0).and(Saves::output(0)),
        }
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::scan(launch, self.scan, self.dim, self.reverse)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::scan_workspace_bytes(inputs[0], self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::scan(launch, self.scan, self.dim, self.reverse)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let back = !self.reverse;
        let recurrence = |factors: &Tensor| {
            let op = Recurrence { dim: self.dim, reverse: back };
            apply_one(&op, &[grad, factors], Site::in_force())
        };
        let dim = self.dim as i64;
        let result = match self.scan {
            cpu::Scan::Sum => {
                apply_one(&Cumulative { reverse: back, ..*self }, &[grad], Site::in_force())?
            }
            // d out(i) / d x(k) is the product of the others up to i: of those before k, times
            // those from k to i, which the recurrence gathers.
            cpu::Scan::Product => {
                let x = backward.input(0)?;
                let factors = if back { x.moved_up(dim)? } else { x.clone() };
                x.products_before(dim, self.reverse)?.mul(&recurrence(&factors)?)?
            }
            // exp(x(k) - out(k)) times the sum of g(i) exp(out(k) - out(i)); neighbours differ by a
            // factor of at most 1.
            cpu::Scan::LogSumExp => {
                let (x, out) = (backward.input(0)?, backward.output(0)?);
                let next = out.moved_up(dim)?;
                let step = if back { out.sub(&next)? } else { next.sub(out)? };
                x.sub(out)?.exp()?.mul(&recurrence(&step.exp()?)?)?
            }
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Tensor {
    /// For each element the product of those before it along `dim`, or after it if `reverse`.
    pub(crate) fn products_before(&self, dim: i64, reverse: bool) -> Result<Tensor> {
        if self.rank() == 0 {
            return self.ones_like();
        }
        let len = self.shape()[dim as usize] as i64;
        if len == 0 {
            return Ok(self.clone());
        }
        let one = self.narrow(dim, 0, 1)?.ones_like()?;
        let rest = self.narrow(dim, i64::from(reverse), len - 1)?;
        let moved = if reverse {
            Tensor::cat(&[&rest, &one], dim)?
        } else {
            Tensor::cat(&[&one, &rest], dim)?
        };
        let op = Cumulative { scan: cpu::Scan::Product, dim: dim as usize, reverse };
        apply_one(&op, &[&moved], Site::in_force())
    }

    /// The elements one place earlier along `dim`; the first comes last.
    fn moved_up(&self, dim: i64) -> Result<Tensor> {
        if self.rank() == 0 || self.shape()[dim as usize] < 2 {
            return Ok(self.clone());
        }
        let len = self.shape()[dim as usize] as i64;
        Tensor::cat(&[&self.narrow(dim, 1, len - 1)?, &self.narrow(dim, 0, 1)?], dim)
    }
}

/// Inputs [g, a]: T(k) = g(k) + a(k - 1) T(k - 1) along `dim`; from the end S(k) = g(k) + a(k) S(k
/// + 1). The last a plays no part.
#[derive(Clone, Copy, Debug)]
struct Recurrence {
    dim: usize,
    reverse: bool,
}

impl Operation for Recurrence {
    fn info(&self) -> &'static OpInfo {
        &RECURRENCE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).and(Saves::output(0).when(needs.has(1)))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::recurrence(launch, self.dim, self.reverse)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::scan_workspace_bytes(inputs[0], self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::recurrence(launch, self.dim, self.reverse)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let back = Recurrence { reverse: !self.reverse, ..*self };
        let own = apply_one(&back, &[backward.grad()?, backward.input(1)?], Site::in_force())?;
        let factors = backward.for_input(1, || {
            let (out, dim) = (backward.output(0)?, self.dim as i64);
            let len = out.shape().get(self.dim).map_or(0, |&size| size as i64);
            if len < 2 {
                return out.zeros_like();
            }
            // a(k) joins the state on one of its sides to the result on the other.
            let (early, late) = if self.reverse { (&own, out) } else { (out, &own) };
            let product = early.narrow(dim, 0, len - 1)?.mul(&late.narrow(dim, 1, len - 1)?)?;
            Tensor::cat(&[&product, &product.narrow(dim, 0, 1)?.zeros_like()?], dim)
        })?;
        Ok(smallvec::smallvec![Some(own), factors])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Outputs [values, indices]: the largest or smallest so far, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CumulativeExtreme {
    pub(crate) dim: usize,
    pub(crate) max: bool,
}

impl Operation for CumulativeExtreme {
    fn info(&self) -> &'static OpInfo {
        if self.max { &CUMMAX } else { &CUMMIN }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let values = Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?;
        let indices = Meta { dtype: DType::I64, ..values.clone() };
        Ok(Inferred::Exact(smallvec::smallvec![values, indices]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cumulative_extreme(launch, self.dim, self.max)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::scan_workspace_bytes(inputs[0], self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::scan_extreme(launch, self.dim, self.max)
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

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "scan",
        signatures,
        differentiable: true,
        out: Out::Copied,
        cuda: OnCuda::Kernels(&source_files::SCAN),
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

static CUMSUM: OpInfo = OpInfo {
    in_place: true,
    ..info("cumsum", &["cumsum(Tensor self, int dim, *, DType? dtype=None) -> Tensor"])
};
static CUMPROD: OpInfo = OpInfo {
    in_place: true,
    ..info("cumprod", &["cumprod(Tensor self, int dim, *, DType? dtype=None) -> Tensor"])
};
static LOGCUMSUMEXP: OpInfo = OpInfo {
    dtypes: DTypes::FLOATS,
    ..info("logcumsumexp", &["logcumsumexp(Tensor self, int dim) -> Tensor"])
};
static CUMMAX: OpInfo =
    info("cummax", &["cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"]);
static CUMMIN: OpInfo =
    info("cummin", &["cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"]);
/// Internal: reached only through the derivatives.
static RECURRENCE: OpInfo = OpInfo { dtypes: DTypes::FLOATS, ..info("recurrence", &[]) };
static DIFF: OpInfo = composed(
    "diff",
    &[
        "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    ],
);
static GRADIENT: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::of(&[
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ]),
    ..composed(
        "gradient",
        &[
            "gradient(Tensor self, *, Tensor[] spacing, int[]? dim=None, int edge_order=1) -> Tensor[]",
            "gradient(Tensor self, *, float? spacing=None, int[]? dim=None, int edge_order=1) -> Tensor[]",
            "gradient(Tensor self, *, float[] spacing, int[]? dim=None, int edge_order=1) -> Tensor[]",
        ],
    )
};
static TRAPEZOID: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::NUMBERS,
    ..composed(
        "trapezoid",
        &[
            "trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
            "trapezoid(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
        ],
    )
};
static TRAPZ: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::NUMBERS,
    ..composed(
        "trapz",
        &[
            "trapz(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
            "trapz(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
        ],
    )
};
static CUMULATIVE_TRAPEZOID: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::NUMBERS,
    ..composed(
        "cumulative_trapezoid",
        &[
            "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
            "cumulative_trapezoid(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[
    &CUMSUM,
    &CUMPROD,
    &LOGCUMSUMEXP,
    &CUMMAX,
    &CUMMIN,
    &DIFF,
    &GRADIENT,
    &TRAPEZOID,
    &TRAPZ,
    &CUMULATIVE_TRAPEZOID,
];
