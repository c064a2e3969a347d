//! Arithmetic on two operands, of which one may be a host number. Operands have equal dtypes here; promotion is done before, in
//! `api/binary.rs`.

use std::sync::Arc;

use plimsoll_core::{Result, Scalar};

use super::elementwise::{self, sum_to};
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, Grads, Inferred, Needs, OpInfo, Operation, Saves, dtypes};
use plimsoll_kernels::cpu::binary as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Where the second operand comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// Input 1.
    Tensor,
    /// A host number on the right: `x - 2`.
    Right(Scalar),
    /// A host number on the left: `2 - x`.
    Left(Scalar),
}

/// Which arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
    Minimum,
}

/// `a + alpha * b`, `a - alpha * b`, `a * b`, `a / b`, the larger or the smaller of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) operand: Operand,
    /// Scales the second operand of sums and differences.
    pub(crate) alpha: Scalar,
}

impl Binary {
    /// PyTorch's name.
    pub(crate) fn name(&self) -> &'static str {
        self.info().name
    }

    /// Without a scale.
    pub(crate) const fn plain(arithmetic: Arithmetic, operand: Operand) -> Binary {
        Binary { arithmetic, operand, alpha: Scalar::Int(1) }
    }
}

impl Operation for Binary {
    fn info(&self) -> &'static OpInfo {
        match self.arithmetic {
            Arithmetic::Add => &ADD,
            Arithmetic::Sub => &SUB,
            Arithmetic::Mul => &MUL,
            Arithmetic::Div => &DIV,
            Arithmetic::Maximum => &MAXIMUM,
            Arithmetic::Minimum => &MINIMUM,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.info().name, inputs, inputs[0].dtype)
    }

    fn saves(&self, needs: Needs) -> Saves {
        match (self.arithmetic, self.operand) {
            (Arithmetic::Add | Arithmetic::Sub, _) => Saves::NOTHING,
            (Arithmetic::Mul, Operand::Tensor) => {
                Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
            }
            (Arithmetic::Mul | Arithmetic::Div, Operand::Right(_)) => Saves::NOTHING,
            (Arithmetic::Mul, Operand::Left(_)) => Saves::NOTHING,
            (Arithmetic::Div, Operand::Tensor) => {
                Saves::input(1).and(Saves::input(0).when(needs.has(1)))
            }
            (Arithmetic::Div, Operand::Left(_)) => Saves::input(0),
            (Arithmetic::Maximum | Arithmetic::Minimum, Operand::Tensor) => {
                Saves::input(0).and(Saves::input(1))
            }
            (Arithmetic::Maximum | Arithmetic::Minimum, _) => Saves::input(0),
        }
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match (self.arithmetic, self.operand) {
            (Arithmetic::Add, Operand::Tensor) => cpu::add(launch, self.alpha),
            (Arithmetic::Sub, Operand::Tensor) => cpu::sub(launch, self.alpha),
            (Arithmetic::Mul, Operand::Tensor) => cpu::mul(launch),
            (Arithmetic::Div, Operand::Tensor) => cpu::div(launch),
            (Arithmetic::Maximum, Operand::Tensor) => cpu::maximum(launch),
            (Arithmetic::Minimum, Operand::Tensor) => cpu::minimum(launch),
            (Arithmetic::Add, Operand::Right(value) | Operand::Left(value)) => {
                cpu::add_scalar(launch, value)
            }
            (Arithmetic::Sub, Operand::Right(value)) => cpu::sub_scalar(launch, value),
            (Arithmetic::Sub, Operand::Left(value)) => cpu::rsub_scalar(launch, value),
            (Arithmetic::Mul, Operand::Right(value) | Operand::Left(value)) => {
                cpu::mul_scalar(launch, value)
            }
            (Arithmetic::Div, Operand::Right(value)) => cpu::div_scalar(launch, value),
            (Arithmetic::Div, Operand::Left(value)) => cpu::rdiv_scalar(launch, value),
            (Arithmetic::Maximum, Operand::Right(value) | Operand::Left(value)) => {
                cpu::maximum_scalar(launch, value)
            }
            (Arithmetic::Minimum, Operand::Right(value) | Operand::Left(value)) => {
                cpu::minimum_scalar(launch, value)
            }
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::binary(launch, self.info().name, self.operand, self.alpha)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let to_input =
            |index: usize, make: &dyn Fn() -> Result<Tensor>| -> Result<Option<Tensor>> {
                backward.for_input(index, || sum_to(&make()?, backward.inputs[index].shape()))
            };
        let gradient = |index: usize| -> Result<Tensor> {
            match self.operand {
                Operand::Tensor => self.tensor_gradient(backward, grad, index),
                Operand::Right(value) => self.scalar_gradient(backward, grad, value, false),
                Operand::Left(value) => self.scalar_gradient(backward, grad, value, true),
            }
        };
        (0..backward.inputs.len()).map(|index| to_input(index, &|| gradient(index))).collect()
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Binary {
    /// The gradient of input `index` when both operands are tensors, in the result's shape.
    fn tensor_gradient(&self, b: &Backward<'_>, grad: &Tensor, index: usize) -> Result<Tensor> {
        match (self.arithmetic, index) {
            (Arithmetic::Add | Arithmetic::Sub, 0) => Ok(grad.clone()),
            (Arithmetic::Add, _) => scaled(grad, self.alpha, false),
            (Arithmetic::Sub, _) => scaled(grad, self.alpha, true),
            (Arithmetic::Mul, 0) => grad.mul(b.input(1)?),
            (Arithmetic::Mul, _) => grad.mul(b.input(0)?),
            (Arithmetic::Div, 0) => grad.div(b.input(1)?),
            (Arithmetic::Div, _) => {
                let divisor = b.input(1)?;
                grad.neg()?.mul(&b.input(0)?.div(divisor)?)?.div(divisor)
            }
            (Arithmetic::Maximum | Arithmetic::Minimum, _) => {
                // Where both are equal each gets half, as in PyTorch.
                let (own, other) = (b.input(index)?, b.input(1 - index)?);
                let wins = match self.arithmetic {
                    Arithmetic::Maximum => own.gt(other)?,
                    _ => own.lt(other)?,
                };
                let half = Tensor::where_(&own.eq(other)?, &grad.mul(0.5)?, 0.0)?;
                Tensor::where_(&wins, grad, &half)
            }
        }
    }

    /// The gradient of the tensor when the other operand is a host number, on the left if `left`.
    fn scalar_gradient(
        &self,
        b: &Backward<'_>,
        grad: &Tensor,
        value: Scalar,
        left: bool,
    ) -> Result<Tensor> {
        match self.arithmetic {
            Arithmetic::Add => Ok(grad.clone()),
            Arithmetic::Sub if left => grad.neg(),
            Arithmetic::Sub => Ok(grad.clone()),
            Arithmetic::Mul => grad.mul(value.to_f64()),
            Arithmetic::Div if left => {
                let x = b.input(0)?;
                grad.mul(-value.to_f64())?.div(&x.mul(x)?)
            }
            Arithmetic::Div => grad.div(value.to_f64()),
            Arithmetic::Maximum | Arithmetic::Minimum => {
                let x = b.input(0)?;
                let wins = match self.arithmetic {
                    Arithmetic::Maximum => x.gt(value.to_f64())?,
                    _ => x.lt(value.to_f64())?,
                };
                let half = Tensor::where_(&x.eq(value.to_f64())?, &grad.mul(0.5)?, 0.0)?;
                Tensor::where_(&wins, grad, &half)
            }
        }
    }
}

fn scaled(grad: &Tensor, alpha: Scalar, negative: bool) -> Result<Tensor> {
    match (alpha.to_f64(), negative) {
        (1.0, false) => Ok(grad.clone()),
        (1.0, true) => grad.neg(),
        (alpha, false) => grad.mul(alpha),
        (alpha, true) => grad.mul(-alpha),
    }
}

const fn info(name: &'static str, signature: &'static str, summary: &'static str) -> OpInfo {
    OpInfo {
        name,
        family: "binary",
        signature,
        summary,
        differentiable: true,
        in_place: true,
        out: true,
        cuda: true,
        dtypes: dtypes::ALL,
    }
}

static ADD: OpInfo = info(
    "add",
    "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    "The sum of both operands, the second scaled by alpha",
);
static SUB: OpInfo = OpInfo {
    dtypes: dtypes::NUMBERS,
    ..info(
        "sub",
        "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
        "The difference of both operands, the second scaled by alpha",
    )
};
static MUL: OpInfo = info(
    "mul",
    "mul(Tensor self, Tensor|Scalar other) -> Tensor",
    "The product of both operands, element by element",
);
static DIV: OpInfo = OpInfo {
    dtypes: dtypes::FLOATS,
    ..info(
        "div",
        "div(Tensor self, Tensor|Scalar other) -> Tensor",
        "The true quotient of both operands; integers give floats",
    )
};
static MAXIMUM: OpInfo = OpInfo {
    in_place: false,
    ..info(
        "maximum",
        "maximum(Tensor self, Tensor|Scalar other) -> Tensor",
        "The larger of both operands; NaN wins",
    )
};
static MINIMUM: OpInfo = OpInfo {
    in_place: false,
    ..info(
        "minimum",
        "minimum(Tensor self, Tensor|Scalar other) -> Tensor",
        "The smaller of both operands; NaN wins",
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&ADD, &SUB, &MUL, &DIV, &MAXIMUM, &MINIMUM];
