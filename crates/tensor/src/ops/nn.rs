//! Operations of neural networks that would be chains of simpler ones: softmax and dropout.
//! `layer_norm.rs` and `batch_norm.rs` are files of their own.

use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_cuda::source_files;

use super::elementwise;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::generator::Draws;
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::{random, softmax as cpu};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// `exp(x)` over its sum along `dim`, or the logarithm of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    pub(crate) dim: usize,
    pub(crate) log: bool,
}

impl Operation for Softmax {
    fn info(&self) -> &'static OpInfo {
        if self.log { &LOG_SOFTMAX } else { &SOFTMAX }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_float(self.info(), inputs[0])?;
        Ok(Inferred::one(Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(0)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        if self.log { cpu::log_softmax(launch, self.dim) } else { cpu::softmax(launch, self.dim) }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::softmax(launch, self.dim, self.log)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, out) = (backward.grad()?, backward.output(0)?);
        let along = [self.dim as i64];
        let result = if !is_grad_enabled() {
            apply_one(&SoftmaxBackward(*self), &[grad, out], Site::in_force())?
        } else if self.log {
            grad.sub(&out.exp()?.mul(&grad.sum_over(&along, true)?)?)?
        } else {
            let product = grad.mul(out)?;
            product.sub(&out.mul(&product.sum_over(&along, true)?)?)?
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradient of a softmax from [grad, output] in one kernel, for backward passes that nobody
/// differentiates again.
#[derive(Clone, Copy, Debug)]
struct SoftmaxBackward(Softmax);

impl Operation for SoftmaxBackward {
    fn info(&self) -> &'static OpInfo {
        if self.0.log { &LOG_SOFTMAX_BACKWARD } else { &SOFTMAX_BACKWARD }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[1].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        if self.0.log {
            cpu::log_softmax_backward(launch, self.0.dim)
        } else {
            cpu::softmax_backward(launch, self.0.dim)
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::softmax_backward(launch, self.0.dim, self.0.log)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Zeros elements with probability `p` and scales the others by `1 / (1 - p)`.
///
/// The mask is never stored: it follows from `draws`, so backward is the same operation on the
/// gradient and saves nothing. In a capture it saves input 1, the 16 bytes that its draws start
/// from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropout {
    pub(crate) p: f64,
    pub(crate) draws: Draws,
}

impl Operation for Dropout {
    fn info(&self) -> &'static OpInfo {
        &DROPOUT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_float(&DROPOUT, inputs[0])?;
        elementwise::infer(DROPOUT.name, &inputs[..1], inputs[0].dtype)
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1).when(self.draws.from_memory)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let (stream, launch) = self.draws.resolve(launch);
        random::dropout(&launch, self.p, stream)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::dropout(launch, self.p, self.draws.on_cuda())
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        if !self.draws.from_memory {
            return Ok(smallvec::smallvec![Some(apply_one(self, &[grad], Site::in_force())?)]);
        }
        let inputs = [grad, backward.input(1)?];
        Ok(smallvec::smallvec![Some(apply_one(self, &inputs, Site::in_force())?), None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Refuses what is not a float, as PyTorch does here.
pub(super) fn check_float(info: &OpInfo, input: &Meta) -> Result<()> {
    if input.dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(
        info.name,
        format!(
            "the input of shape {:?} is {}; convert it with `to` to a float first",
            input.shape(),
            input.dtype
        ),
    ))
}

/// Sums over the dimensions before the last `rank`.
pub(super) fn sum_leading(x: &Tensor, rank: usize) -> Result<Tensor> {
    let lead: Vec<i64> = (0..(x.rank() - rank) as i64).collect();
    if lead.is_empty() { Ok(x.clone()) } else { x.sum_with(&lead[..]) }
}

pub(super) const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "nn",
        signatures,
        differentiable: true,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::FLOATS,
        ..OpInfo::BARE
    }
}

static SOFTMAX: OpInfo = OpInfo {
    out: Out::Exact,
    // A line is read to its end before it is written, an element at a time.
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::SOFTMAX),
    ..info("softmax", &["softmax(Tensor self, int dim, *, DType? dtype=None) -> Tensor"])
};
static LOG_SOFTMAX: OpInfo = OpInfo {
    out: Out::Exact,
    // A line is read to its end before it is written, an element at a time.
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::SOFTMAX),
    ..info("log_softmax", &["log_softmax(Tensor self, int dim, *, DType? dtype=None) -> Tensor"])
};
/// Internal: reached only through the derivatives.
static SOFTMAX_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::SOFTMAX),
    ..info("softmax_backward", &[])
};
static LOG_SOFTMAX_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::SOFTMAX),
    ..info("log_softmax_backward", &[])
};
static DROPOUT: OpInfo = OpInfo {
    in_place: true,
    cuda: OnCuda::Kernels(&source_files::RANDOM),
    ..info("dropout", &["dropout(Tensor self, float p=0.5, bool training=True) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[
    &SOFTMAX,
    &LOG_SOFTMAX,
    &super::layer_norm::LAYER_NORM,
    &super::batch_norm::BATCH_NORM,
    &super::group_norm::GROUP_NORM,
    &DROPOUT,
];
