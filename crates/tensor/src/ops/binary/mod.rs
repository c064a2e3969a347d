//! Elementwise operations of two operands, of which one may be a host number, one row each: name,
//! kernel, what backward needs, derivatives. Operands have one dtype here: `prepare` brought them
//! together. Arithmetic is here, with its methods in `api/binary.rs`; the other files of this
//! folder have rows and methods in one entry (`entry.rs`).

pub(crate) mod bitwise;
mod entry;
pub(crate) mod functions;
pub(crate) mod special;

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result, Scalar};

use super::elementwise::{self, rounded};
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Promotion,
    Saves,
};
use crate::promotion::Other;
use plimsoll_cuda::source_files;
pub(crate) use plimsoll_kernels::Second;
use plimsoll_kernels::cpu::divide::{Rounding, divide};
use plimsoll_kernels::cpu::{binary as cpu, pow};
use plimsoll_kernels::{CpuLaunch, Meta};

/// One binary operation.
#[derive(Debug)]
pub(crate) struct BinaryRow {
    pub(crate) info: OpInfo,
    /// The result's dtype, if that is not the operands'.
    result: Option<DType>,
    /// Whether a host number beside halves is used as it is, and not rounded to them first.
    wide_number: bool,
    /// What the derivative by the first operand reads, and what that by the second does.
    reads: [Reads; 2],
    cpu: fn(&CpuLaunch<'_>, Second, alpha: Scalar) -> Result<()>,
    /// The gradients of the first and of the second operand, in the result's shape.
    derivatives: [fn(&Sides<'_>) -> Result<Tensor>; 2],
}

impl BinaryRow {
    /// What rows leave out: a result of the operands' dtype, that does not move with them.
    const STEP: BinaryRow = BinaryRow {
        info: OpInfo::BARE,
        result: None,
        wide_number: false,
        reads: [NOTHING; 2],
        cpu: |launch, _, _| Err(Error::unsupported(launch.operation, "its row names no kernel")),
        derivatives: [|s| s.grad.zeros_like(), |s| s.grad.zeros_like()],
    };
}

/// What a derivative reads.
#[derive(Clone, Copy, Debug)]
struct Reads {
    a: bool,
    b: bool,
    out: bool,
}

const NOTHING: Reads = Reads { a: false, b: false, out: false };
const A: Reads = Reads { a: true, ..NOTHING };
const B: Reads = Reads { b: true, ..NOTHING };
const BOTH: Reads = Reads { a: true, b: true, out: false };

/// A row as an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary {
    pub(crate) row: &'static BinaryRow,
    pub(crate) second: Second,
    /// Scales the second operand of sums and differences.
    pub(crate) alpha: Scalar,
}

impl Binary {
    /// The row without a scale.
    pub(crate) const fn of(row: &'static BinaryRow, second: Second) -> Binary {
        Binary { row, second, alpha: Scalar::Int(1) }
    }

    /// The second operand beside inputs of `dtype`.
    fn second_of(&self, dtype: DType) -> Second {
        let element = |number: Scalar| match self.row.wide_number {
            true => wrapped(number, dtype),
            false => rounded(wrapped(number, dtype), dtype),
        };
        match self.second {
            Second::Tensor => Second::Tensor,
            Second::Right(number) => Second::Right(element(number)),
            Second::Left(number) => Second::Left(element(number)),
        }
    }

    /// Which operand of the row input `index` is: 1 for the only input beside a number on the left.
    fn side(&self, index: usize) -> usize {
        if matches!(self.second, Second::Left(_)) { 1 } else { index }
    }
}

impl Operation for Binary {
    fn info(&self) -> &'static OpInfo {
        &self.row.info
    }

    fn node_name(&self, _inputs: &[Meta]) -> Option<&'static str> {
        Some(match (self.row.info.name, self.second) {
            ("sub", Second::Left(_)) => "RsubBackward1",
            // PyTorch multiplies by the reciprocal.
            ("div", Second::Left(_)) => "MulBackward0",
            ("div", _) if std::ptr::eq(self.row, &DIV_TRUNC) => "DivBackward2",
            ("div", _) if std::ptr::eq(self.row, &DIV_FLOOR) => "DivBackward2",
            ("pow", Second::Tensor) => "PowBackward1",
            ("pow", Second::Left(_)) => "PowBackward2",
            ("remainder", Second::Tensor) => "RemainderBackward1",
            ("fmod", Second::Tensor) => "FmodBackward1",
            ("copysign", Second::Right(_)) => "CopysignBackward1",
            _ => return None,
        })
    }

    #[inline]
    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let dtype = inputs[0].dtype;
        if matches!(self.alpha, Scalar::Float(_)) && !dtype.is_float() {
            // PyTorch's rule: it would be cut off silently.
            return Err(Error::dtype(
                self.row.info.name,
                format!(
                    "alpha {} is a fraction, but the operands are {dtype}; use a whole alpha",
                    self.alpha
                ),
            ));
        }
        elementwise::infer(self.row.info.name, inputs, self.row.result.unwrap_or(dtype))
    }

    fn number(&self) -> Option<Scalar> {
        match self.second {
            Second::Tensor => None,
            Second::Right(number) | Second::Left(number) => Some(number),
        }
    }

    fn saves(&self, needs: Needs) -> Saves {
        let (a, b) = match self.second {
            Second::Tensor => (Saves::input(0), Saves::input(1)),
            Second::Right(_) => (Saves::input(0), Saves::NOTHING),
            Second::Left(_) => (Saves::NOTHING, Saves::input(0)),
        };
        (0..2).filter(|&index| needs.has(index)).fold(Saves::NOTHING, |saves, index| {
            let reads = self.row.reads[self.side(index)];
            saves.and(a.when(reads.a)).and(b.when(reads.b)).and(Saves::output(0).when(reads.out))
        })
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let dtype = launch.inputs[0].dtype();
        (self.row.cpu)(launch, self.second_of(dtype), rounded(self.alpha, dtype))
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let dtype = launch.inputs[0].dtype();
        let (second, alpha) = (self.second_of(dtype), rounded(self.alpha, dtype));
        match self.row.info.cuda {
            OnCuda::Kernels(source) if std::ptr::eq(source, &source_files::BINARY) => {
                cuda::binary(launch, self.row.info.name, second, alpha)
            }
            _ => {
                // Shifts must know how many bits there are.
                let bits = launch.inputs[0].dtype().size_bytes() as f64 * 8.0;
                let down = f64::from(u8::from(std::ptr::eq(self.row, &raw const DIV_FLOOR)));
                cuda::tail(launch, &self.row.info, Some(second), [bits, down, 0.0])
            }
        }
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (a, b) = match self.second {
            Second::Tensor => (tensor(backward, 0), tensor(backward, 1)),
            Second::Right(number) => (tensor(backward, 0), Some(Other::Scalar(number))),
            Second::Left(number) => (Some(Other::Scalar(number)), tensor(backward, 0)),
        };
        let out = backward.saved_outputs.first().and_then(Option::as_ref);
        let sides = Sides { backward, grad: backward.grad()?, a, b, out, alpha: self.alpha };
        (0..backward.inputs.len())
            .map(|index| {
                backward.for_input(index, || {
                    let gradient = self.row.derivatives[self.side(index)](&sides)?;
                    gradient.sum_to(backward.inputs[index].shape())
                })
            })
            .collect()
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// A whole number as an element of `dtype`, cut to its bits as PyTorch does: -1 is 255 beside
/// uint8.
fn wrapped(number: Scalar, dtype: DType) -> Scalar {
    match (number, dtype) {
        (Scalar::Int(n), DType::U8) => Scalar::Int(i64::from(n as u8)),
        (Scalar::Int(n), DType::I8) => Scalar::Int(i64::from(n as i8)),
        (Scalar::Int(n), DType::I16) => Scalar::Int(i64::from(n as i16)),
        (Scalar::Int(n), DType::I32) => Scalar::Int(i64::from(n as i32)),
        _ => number,
    }
}

fn tensor<'a>(backward: &Backward<'a>, index: usize) -> Option<Other<'a>> {
    backward.saved_inputs.get(index).and_then(Option::as_ref).map(Other::Tensor)
}

/// What derivatives work from: the gradient of the result, and the operands that they said they
/// read.
struct Sides<'a> {
    backward: &'a Backward<'a>,
    grad: &'a Tensor,
    a: Option<Other<'a>>,
    b: Option<Other<'a>>,
    out: Option<&'a Tensor>,
    alpha: Scalar,
}

impl<'a> Sides<'a> {
    fn missing(&self, what: &str) -> Error {
        Error::autograd(self.backward.operation, format!("{what} was not saved for backward"))
    }

    fn a(&self) -> Result<Other<'a>> {
        self.a.ok_or_else(|| self.missing("the first operand"))
    }

    fn b(&self) -> Result<Other<'a>> {
        self.b.ok_or_else(|| self.missing("the second operand"))
    }

    fn out(&self) -> Result<&'a Tensor> {
        self.out.ok_or_else(|| self.missing("the result"))
    }

    /// The second operand where it is differentiated, which a number never is.
    fn tensor_b(&self) -> Result<&'a Tensor> {
        match self.b()? {
            Other::Tensor(b) => Ok(b),
            Other::Scalar(_) => Err(self.missing("the second operand as a tensor")),
        }
    }

    /// The first operand where it is differentiated.
    fn tensor_a(&self) -> Result<&'a Tensor> {
        match self.a()? {
            Other::Tensor(a) => Ok(a),
            Other::Scalar(_) => Err(self.missing("the first operand as a tensor")),
        }
    }

    /// What PyTorch says of the operands of some functions.
    fn no_derivative(&self) -> Error {
        Error::unsupported(self.backward.operation, "there is no derivative by this operand")
    }

    /// The gradient unless `own` is not the chosen one; half of it where both are equal. As in
    /// PyTorch, a NaN does not lose, and nothing does beside one.
    fn chosen(&self, own: &Tensor, loses: &Tensor, other: Other<'_>) -> Result<Tensor> {
        let shared = Tensor::where_(&own.eq(other)?, &self.grad.mul(0.5)?, self.grad)?;
        Tensor::where_(loses, 0.0, &shared)
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

/// What computes the rows here that are not hot.
const ARITHMETIC: OnCuda = OnCuda::Kernels(&source_files::ARITHMETIC);

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "binary",
        signatures,
        differentiable: true,
        in_place: true,
        out: Out::Cast,
        elementwise: true,
        cuda: OnCuda::Kernels(&source_files::BINARY),
        dtypes: DTypes::ALL,
        inputs: &[Input::Operand],
        promotion: Promotion::Common,
        ..OpInfo::BARE
    }
}

pub(crate) static ADD: BinaryRow = BinaryRow {
    info: info("add", &["add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor"]),
    reads: [NOTHING, NOTHING],
    cpu: |launch, second, alpha| match second {
        Second::Tensor => cpu::add(launch, alpha),
        Second::Right(number) | Second::Left(number) => cpu::add_scalar(launch, number),
    },
    derivatives: [|s| Ok(s.grad.clone()), |s| scaled(s.grad, s.alpha, false)],
    ..BinaryRow::STEP
};

pub(crate) static SUB: BinaryRow = BinaryRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        ..info("sub", &["sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor"])
    },
    reads: [NOTHING, NOTHING],
    cpu: |launch, second, alpha| match second {
        Second::Tensor => cpu::sub(launch, alpha),
        Second::Right(number) => cpu::sub_scalar(launch, number),
        Second::Left(number) => cpu::rsub_scalar(launch, number),
    },
    derivatives: [|s| Ok(s.grad.clone()), |s| scaled(s.grad, s.alpha, true)],
    ..BinaryRow::STEP
};

pub(crate) static MUL: BinaryRow = BinaryRow {
    info: info("mul", &["mul(Tensor self, Tensor|Scalar other) -> Tensor"]),
    wide_number: true,
    reads: [B, A],
    cpu: |launch, second, _| match second {
        Second::Tensor => cpu::mul(launch),
        Second::Right(number) | Second::Left(number) => cpu::mul_scalar(launch, number),
    },
    derivatives: [|s| s.grad.mul(s.b()?), |s| s.grad.mul(s.a()?)],
    ..BinaryRow::STEP
};

pub(crate) static DIV: BinaryRow = BinaryRow {
    info: OpInfo {
        dtypes: DTypes::FLOATS,
        promotion: Promotion::Float,
        ..info(
            "div",
            &["div(Tensor self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor"],
        )
    },
    wide_number: true,
    reads: [B, BOTH],
    cpu: |launch, second, _| match second {
        Second::Tensor => cpu::div(launch),
        Second::Right(number) => cpu::div_scalar(launch, number),
        Second::Left(number) => cpu::rdiv_scalar(launch, number),
    },
    derivatives: [
        |s| s.grad.div(s.b()?),
        |s| {
            let divisor = s.tensor_b()?;
            let quotient = match s.a()? {
                Other::Tensor(a) => a.div(divisor)?,
                Other::Scalar(number) => divisor.rdiv(number)?,
            };
            s.grad.neg()?.mul(&quotient)?.div(divisor)
        },
    ],
    ..BinaryRow::STEP
};

/// [`DIV`] rounded toward zero. Whole numbers do not move with their operands.
pub(crate) static DIV_TRUNC: BinaryRow = BinaryRow {
    info: OpInfo { cuda: ARITHMETIC, dtypes: DTypes::NUMBERS, ..info("div", &[]) },
    wide_number: true,
    reads: [NOTHING, NOTHING],
    cpu: |launch, second, _| divide(launch, second, Rounding::Trunc),
    derivatives: [|s| s.grad.zeros_like(), |s| s.grad.zeros_like()],
    ..BinaryRow::STEP
};

/// [`DIV`] rounded down.
pub(crate) static DIV_FLOOR: BinaryRow = BinaryRow {
    info: OpInfo { cuda: ARITHMETIC, dtypes: DTypes::NUMBERS, ..info("div", &[]) },
    wide_number: true,
    reads: [NOTHING, NOTHING],
    cpu: |launch, second, _| divide(launch, second, Rounding::Floor),
    derivatives: [|s| s.grad.zeros_like(), |s| s.grad.zeros_like()],
    ..BinaryRow::STEP
};

pub(crate) static MAXIMUM: BinaryRow = BinaryRow {
    info: OpInfo {
        in_place: false,
        ..info("maximum", &["maximum(Tensor self, Tensor other) -> Tensor"])
    },
    reads: [BOTH, BOTH],
    cpu: |launch, second, _| match second {
        Second::Tensor => cpu::maximum(launch),
        Second::Right(number) | Second::Left(number) => cpu::maximum_scalar(launch, number),
    },
    derivatives: [
        |s| {
            let (own, other) = (s.tensor_a()?, s.b()?);
            s.chosen(own, &own.lt(other)?, other)
        },
        |s| {
            let (own, other) = (s.tensor_b()?, s.a()?);
            s.chosen(own, &own.lt(other)?, other)
        },
    ],
    ..BinaryRow::STEP
};

pub(crate) static MINIMUM: BinaryRow = BinaryRow {
    info: OpInfo {
        in_place: false,
        ..info("minimum", &["minimum(Tensor self, Tensor other) -> Tensor"])
    },
    reads: [BOTH, BOTH],
    cpu: |launch, second, _| match second {
        Second::Tensor => cpu::minimum(launch),
        Second::Right(number) | Second::Left(number) => cpu::minimum_scalar(launch, number),
    },
    derivatives: [
        |s| {
            let (own, other) = (s.tensor_a()?, s.b()?);
            s.chosen(own, &own.gt(other)?, other)
        },
        |s| {
            let (own, other) = (s.tensor_b()?, s.a()?);
            s.chosen(own, &own.gt(other)?, other)
        },
    ],
    ..BinaryRow::STEP
};

pub(crate) static POW: BinaryRow = BinaryRow {
    info: OpInfo {
        cuda: ARITHMETIC,
        dtypes: DTypes::NUMBERS,
        ..info(
            "pow",
            &[
                "pow(Tensor self, Tensor|Scalar exponent) -> Tensor",
                "pow(Scalar self, Tensor exponent) -> Tensor",
            ],
        )
    },
    reads: [BOTH, Reads { a: true, b: true, out: true }],
    cpu: |launch, second, _| pow::pow(launch, second),
    derivatives: [
        |s| match s.b()? {
            // The zeroth power is 1 even at 0, where the general rule would give 0 times infinity.
            Other::Scalar(number) if number.to_f64() == 0.0 => s.grad.zeros_like(),
            Other::Scalar(number) => {
                let exponent = number.to_f64();
                s.grad.mul(&s.tensor_a()?.pow(exponent - 1.0)?.mul(exponent)?)
            }
            Other::Tensor(exponent) => {
                let slope = s.tensor_a()?.pow(&exponent.sub(1.0)?)?.mul(exponent)?;
                Tensor::where_(&exponent.eq(0.0)?, 0.0, &s.grad.mul(&slope)?)
            }
        },
        |s| {
            let (exponent, out) = (s.tensor_b()?, s.out()?);
            match s.a()? {
                Other::Scalar(base) if base.to_f64() == 0.0 => {
                    // 0 to a power is flat from 0 up.
                    let slope = out.mul(f64::NEG_INFINITY)?;
                    s.grad.mul(&Tensor::where_(&exponent.ge(0.0)?, 0.0, &slope)?)
                }
                Other::Scalar(base) => s.grad.mul(&out.mul(base.to_f64().ln())?),
                Other::Tensor(base) => {
                    let flat = base.eq(0.0)?.mul(&exponent.ge(0.0)?)?;
                    s.grad.mul(&Tensor::where_(&flat, 0.0, &out.mul(&base.log()?)?)?)
                }
            }
        },
    ],
    ..BinaryRow::STEP
};

/// Integers have no powers below 0 that are whole: PyTorch refuses them as numbers, and so do we.
pub(crate) fn check_power(dtype: DType, exponent: Scalar) -> Result<()> {
    if dtype.is_float() || matches!(exponent, Scalar::Float(_)) || exponent.to_i64() >= 0 {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "integers to the negative power {exponent} are not whole; convert to a float dtype first, or write the \
         exponent as a fraction"
    ))
    .in_operation(POW.info.name))
}

pub(crate) static OPS: &[&OpInfo] =
    &[&ADD.info, &SUB.info, &MUL.info, &DIV.info, &MAXIMUM.info, &MINIMUM.info, &POW.info];
