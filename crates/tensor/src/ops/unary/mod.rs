//! Elementwise operations of one input: what their rows are made of. The rows, with the methods of
//! the API, are in `functions.rs`, one entry each.

mod functions;

use std::sync::Arc;

use plimsoll_core::Result;

use super::elementwise;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Autocast, Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out,
    Promotion, Saves,
};
use crate::prepare::{apply, apply_one};
use plimsoll_cuda::source_files;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

pub(crate) use functions::{GELU, GELU_TANH, OPS};

/// One unary operation.
#[derive(Debug)]
pub(crate) struct UnaryRow {
    pub(crate) info: OpInfo,
    /// What the derivative reads: the input, the output, or nothing.
    saves: Saves,
    cpu: fn(&CpuLaunch<'_>) -> Result<()>,
    /// The gradient of the input from the gradient of the output and the saved value (the gradient
    /// itself if none is saved).
    derivative: fn(grad: &Tensor, saved: &Tensor) -> Result<Tensor>,
}

/// A row as an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unary(pub(crate) &'static UnaryRow);

impl Operation for Unary {
    fn info(&self) -> &'static OpInfo {
        &self.0.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.0.info.name, inputs, inputs[0].dtype)
    }

    fn saves(&self, _needs: Needs) -> Saves {
        self.0.saves
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        (self.0.cpu)(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unary(launch, self.0.info.name)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let saved = match self.0.saves {
            Saves { inputs, .. } if inputs.any() => backward.input(0)?,
            Saves { outputs, .. } if outputs.any() => backward.output(0)?,
            _ => grad,
        };
        Ok(smallvec::smallvec![Some((self.0.derivative)(grad, saved)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// A derivative in one kernel, for backward passes that nobody differentiates again. `kernel` takes
/// [grad, saved].
#[derive(Clone, Copy, Debug)]
struct Fused {
    info: &'static OpInfo,
    kernel: fn(&CpuLaunch<'_>) -> Result<()>,
}

impl Operation for Fused {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.info.name, inputs, inputs[0].dtype)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        (self.kernel)(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unary_backward(launch, self.info.name)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// A function of floats; integers become float32.
const FLOAT: OpInfo = OpInfo {
    family: "unary",
    differentiable: true,
    in_place: true,
    out: Out::Cast,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::UNARY),
    dtypes: DTypes::FLOATS,
    inputs: &[Input::Operand],
    promotion: Promotion::Float,
    ..OpInfo::BARE
};

/// As [`FLOAT`], and in float32 where CUDA mixes precisions.
const FLOAT32: OpInfo = OpInfo { autocast: Autocast::FLOAT32_ON_CUDA, ..FLOAT };

/// As [`FLOAT`], of floats alone.
const FLOAT_ONLY: OpInfo = OpInfo { promotion: Promotion::Common, ..FLOAT };

/// A function of every number, of its dtype.
const NUMBER: OpInfo = OpInfo { dtypes: DTypes::NUMBERS, promotion: Promotion::Common, ..FLOAT };

/// A function of every dtype.
const ANY: OpInfo = OpInfo { dtypes: DTypes::ALL, ..NUMBER };

/// A derivative kernel: internal, reached only through its forward operation.
const fn fused(name: &'static str) -> OpInfo {
    OpInfo {
        name,
        differentiable: false,
        in_place: false,
        out: Out::None,
        inputs: &[Input::Given],
        promotion: Promotion::None,
        ..FLOAT
    }
}

#[track_caller]
fn run_fused(
    info: &'static OpInfo,
    kernel: fn(&CpuLaunch<'_>) -> Result<()>,
    grad: &Tensor,
    saved: &Tensor,
) -> Result<Tensor> {
    apply_one(&Fused { info, kernel }, &[grad, saved], Site::caller())
}

/// Runs the operation of `row` over `x` itself.
pub(crate) fn in_place<'a>(
    row: &'static UnaryRow,
    x: &'a Tensor,
    site: Site,
) -> Result<&'a Tensor> {
    apply(&Unary(row), &[x], Dest::InPlace, site)?;
    Ok(x)
}

/// Runs the operation of `row` into `out`.
pub(crate) fn into(row: &'static UnaryRow, x: &Tensor, out: &Tensor, site: Site) -> Result<()> {
    apply(&Unary(row), &[x], Dest::Out(&[out]), site).map(drop)
}
