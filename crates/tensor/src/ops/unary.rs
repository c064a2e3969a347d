//! Elementwise operations of one input, one row each: name, kernel, what backward needs,
//! derivative.

use std::sync::Arc;

use plimsoll_core::Result;

use super::elementwise;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::apply_one;
use crate::operation::{
    Autocast, Backward, DTypes, Grads, Inferred, Input, Needs, OpInfo, Operation, Out, Promotion,
    Saves,
};
use plimsoll_kernels::cpu::unary as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

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

const fn info(
    name: &'static str,
    signatures: &'static [&'static str],
    summary: &'static str,
) -> OpInfo {
    OpInfo {
        name,
        family: "unary",
        signatures,
        summary,
        differentiable: true,
        in_place: true,
        out: Out::Cast,
        elementwise: true,
        cuda: true,
        dtypes: DTypes::FLOATS,
        inputs: &[Input::Operand],
        promotion: Promotion::Float,
        ..OpInfo::BARE
    }
}

/// A derivative kernel: internal, reached only through its forward operation.
const fn fused(name: &'static str) -> OpInfo {
    OpInfo {
        differentiable: false,
        in_place: false,
        out: Out::None,
        inputs: &[Input::Given],
        promotion: Promotion::None,
        ..info(name, &[], "")
    }
}

pub(crate) static EXP: UnaryRow = UnaryRow {
    info: OpInfo {
        autocast: Autocast::FLOAT32_ON_CUDA,
        ..info("exp", &["exp(Tensor self) -> Tensor"], "e to the power of each element")
    },
    saves: Saves::output(0),
    cpu: cpu::exp,
    derivative: |grad, out| grad.mul(out),
};

pub(crate) static LOG: UnaryRow = UnaryRow {
    info: OpInfo {
        autocast: Autocast::FLOAT32_ON_CUDA,
        ..info("log", &["log(Tensor self) -> Tensor"], "The natural logarithm of each element")
    },
    saves: Saves::input(0),
    cpu: cpu::log,
    derivative: |grad, x| grad.div(x),
};

pub(crate) static LOG1P: UnaryRow = UnaryRow {
    info: OpInfo {
        autocast: Autocast::FLOAT32_ON_CUDA,
        ..info(
            "log1p",
            &["log1p(Tensor self) -> Tensor"],
            "The natural logarithm of 1 plus each element, exact near 0",
        )
    },
    saves: Saves::input(0),
    cpu: cpu::log1p,
    derivative: |grad, x| grad.div(&x.add(1.0)?),
};

pub(crate) static TANH: UnaryRow = UnaryRow {
    info: info("tanh", &["tanh(Tensor self) -> Tensor"], "The hyperbolic tangent of each element"),
    saves: Saves::output(0),
    cpu: cpu::tanh,
    derivative: |grad, out| {
        static INFO: OpInfo = fused("tanh_backward");
        if is_grad_enabled() {
            return grad.mul(&out.mul(out)?.rsub(1.0)?);
        }
        run_fused(&INFO, cpu::tanh_backward, grad, out)
    },
};

pub(crate) static SIGMOID: UnaryRow = UnaryRow {
    info: info("sigmoid", &["sigmoid(Tensor self) -> Tensor"], "1 / (1 + exp(-x)) of each element"),
    saves: Saves::output(0),
    cpu: cpu::sigmoid,
    derivative: |grad, out| {
        static INFO: OpInfo = fused("sigmoid_backward");
        if is_grad_enabled() {
            return grad.mul(&out.mul(&out.rsub(1.0)?)?);
        }
        run_fused(&INFO, cpu::sigmoid_backward, grad, out)
    },
};

pub(crate) static RELU: UnaryRow = UnaryRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        promotion: Promotion::Common,
        ..info("relu", &["relu(Tensor self) -> Tensor"], "Each element, or 0 where it is negative")
    },
    saves: Saves::output(0),
    cpu: cpu::relu,
    derivative: |grad, out| {
        static INFO: OpInfo = fused("relu_backward");
        if is_grad_enabled() {
            // Its zeros come from the result: the gradient depends on it, if only by steps, as in
            // PyTorch.
            return Tensor::where_(&out.gt(0)?, grad, &out.sign()?);
        }
        run_fused(&INFO, cpu::relu_backward, grad, out)
    },
};

pub(crate) static GELU: UnaryRow = UnaryRow {
    info: OpInfo {
        promotion: Promotion::Common,
        ..info(
            "gelu",
            &["gelu(Tensor self, *, str approximate='none') -> Tensor"],
            "x times the normal distribution's mass below x",
        )
    },
    saves: Saves::input(0),
    cpu: cpu::gelu,
    derivative: |grad, x| {
        static INFO: OpInfo = fused("gelu_backward");
        if is_grad_enabled() {
            // Phi(x) + x phi(x), with Phi and phi the normal distribution and its density.
            let mass = x.mul(std::f64::consts::FRAC_1_SQRT_2)?.erf()?.add(1.0)?.mul(0.5)?;
            let density = x.mul(x)?.mul(-0.5)?.exp()?.mul(INV_SQRT_TAU)?;
            return grad.mul(&mass.add(&x.mul(&density)?)?);
        }
        run_fused(&INFO, |launch| cpu::gelu_backward(launch, false), grad, x)
    },
};

/// [`GELU`] in the approximation by tanh.
pub(crate) static GELU_TANH: UnaryRow = UnaryRow {
    info: OpInfo { promotion: Promotion::Common, ..info("gelu_tanh", &[], "") },
    saves: Saves::input(0),
    cpu: cpu::gelu_tanh,
    derivative: |grad, x| {
        static INFO: OpInfo = fused("gelu_tanh_backward");
        if is_grad_enabled() {
            let square = x.mul(x)?;
            let inner = x.mul(&square.mul(0.044_715)?.add(1.0)?)?.mul(SQRT_2_OVER_PI)?;
            let t = inner.tanh()?;
            let slope = square.mul(3.0 * 0.044_715)?.add(1.0)?.mul(SQRT_2_OVER_PI)?;
            let tail = x.mul(&t.mul(&t)?.rsub(1.0)?)?.mul(&slope)?;
            return grad.mul(&t.add(1.0)?.add(&tail)?.mul(0.5)?);
        }
        run_fused(&INFO, |launch| cpu::gelu_backward(launch, true), grad, x)
    },
};

pub(crate) static ERF: UnaryRow = UnaryRow {
    info: info("erf", &["erf(Tensor self) -> Tensor"], "The error function of each element"),
    saves: Saves::input(0),
    cpu: cpu::erf,
    derivative: |grad, x| grad.mul(&x.mul(x)?.neg()?.exp()?.mul(std::f64::consts::FRAC_2_SQRT_PI)?),
};

pub(crate) static SQRT: UnaryRow = UnaryRow {
    info: info("sqrt", &["sqrt(Tensor self) -> Tensor"], "The square root of each element"),
    saves: Saves::output(0),
    cpu: cpu::sqrt,
    derivative: |grad, out| grad.div(&out.mul(2.0)?),
};

pub(crate) static RSQRT: UnaryRow = UnaryRow {
    info: OpInfo {
        autocast: Autocast::FLOAT32_ON_CUDA,
        ..info("rsqrt", &["rsqrt(Tensor self) -> Tensor"], "1 over the square root of each element")
    },
    saves: Saves::output(0),
    cpu: cpu::rsqrt,
    derivative: |grad, out| grad.mul(&out.mul(out)?.mul(out)?.mul(-0.5)?),
};

pub(crate) static RECIPROCAL: UnaryRow = UnaryRow {
    info: OpInfo {
        autocast: Autocast::FLOAT32_ON_CUDA,
        ..info("reciprocal", &["reciprocal(Tensor self) -> Tensor"], "1 over each element")
    },
    saves: Saves::output(0),
    cpu: cpu::reciprocal,
    derivative: |grad, out| grad.mul(&out.mul(out)?.neg()?),
};

pub(crate) static NEG: UnaryRow = UnaryRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        promotion: Promotion::Common,
        ..info("neg", &["neg(Tensor self) -> Tensor"], "Each element with its sign turned")
    },
    saves: Saves::NOTHING,
    cpu: cpu::neg,
    derivative: |grad, _| grad.neg(),
};

pub(crate) static ABS: UnaryRow = UnaryRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        promotion: Promotion::Common,
        ..info("abs", &["abs(Tensor self) -> Tensor"], "Each element without its sign")
    },
    saves: Saves::input(0),
    cpu: cpu::abs,
    derivative: |grad, x| grad.mul(&x.sign()?),
};

pub(crate) static SIGN: UnaryRow = UnaryRow {
    info: OpInfo {
        dtypes: DTypes::ALL,
        promotion: Promotion::Common,
        ..info("sign", &["sign(Tensor self) -> Tensor"], "-1, 0 or 1 by the sign of each element")
    },
    saves: Saves::NOTHING,
    cpu: cpu::sign,
    derivative: |grad, _| grad.zeros_like(),
};

/// 1 / sqrt(2 pi).
const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
/// sqrt(2 / pi).
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

#[track_caller]
fn run_fused(
    info: &'static OpInfo,
    kernel: fn(&CpuLaunch<'_>) -> Result<()>,
    grad: &Tensor,
    saved: &Tensor,
) -> Result<Tensor> {
    apply_one(&Fused { info, kernel }, &[grad, saved], Site::caller())
}

pub(crate) static OPS: &[&OpInfo] = &[
    &ABS.info,
    &ERF.info,
    &EXP.info,
    &GELU.info,
    &LOG.info,
    &LOG1P.info,
    &NEG.info,
    &RECIPROCAL.info,
    &RELU.info,
    &RSQRT.info,
    &SIGMOID.info,
    &SIGN.info,
    &SQRT.info,
    &TANH.info,
];
