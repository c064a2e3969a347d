//! Elementwise operations of three operands: interpolation, and products and quotients that are
//! added. Bounds are in `clamp.rs`, choices in `select.rs`.

use plimsoll_core::Scalar;
use plimsoll_cuda::source_files;
use plimsoll_kernels::Argument;
use plimsoll_kernels::cpu::ternary as cpu;

use super::pointwise::PointwiseRow;
use crate::operation::{DTypes, Input, OnCuda, OpInfo, Out, Promotion, Saves};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "ternary",
        signatures,
        differentiable: true,
        in_place: true,
        out: Out::Cast,
        elementwise: true,
        cuda: OnCuda::Kernels(&source_files::TERNARY),
        dtypes: DTypes::FLOATS,
        inputs: &[Input::Operand],
        promotion: Promotion::Common,
        ..OpInfo::BARE
    }
}

const START: Saves = Saves::input(0);
const SECOND: Saves = Saves::input(1);
const THIRD: Saves = Saves::input(2);

pub(crate) static LERP: PointwiseRow = PointwiseRow {
    info: OpInfo {
        inputs: &[Input::Given],
        promotion: Promotion::None,
        ..info("lerp", &["lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor"])
    },
    saves: [THIRD, THIRD, START.and(SECOND)],
    cpu: |launch, [weight, ..]| match launch.inputs.len() {
        2 => cpu::lerp(launch, Argument::Number(Scalar::Float(weight))),
        _ => cpu::lerp(launch, Argument::Input(2)),
    },
    derivatives: [
        |s| match s.backward.inputs.len() {
            2 => s.grad.mul(1.0 - s.numbers[0]),
            _ => s.grad.mul(&s.input(2)?.rsub(1.0)?),
        },
        |s| match s.backward.inputs.len() {
            2 => s.grad.mul(s.numbers[0]),
            _ => s.grad.mul(s.input(2)?),
        },
        |s| s.grad.mul(&s.input(1)?.sub(s.input(0)?)?),
    ],
};

pub(crate) static ADDCMUL: PointwiseRow = PointwiseRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        ..info(
            "addcmul",
            &["addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"],
        )
    },
    saves: [Saves::NOTHING, THIRD, SECOND],
    cpu: |launch, [value, ..]| cpu::addcmul(launch, Scalar::Float(value)),
    derivatives: [
        |s| Ok(s.grad.clone()),
        |s| s.grad.mul(&s.input(2)?.mul(s.numbers[0])?),
        |s| s.grad.mul(&s.input(1)?.mul(s.numbers[0])?),
    ],
};

pub(crate) static ADDCDIV: PointwiseRow = PointwiseRow {
    info: info(
        "addcdiv",
        &["addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"],
    ),
    saves: [Saves::NOTHING, THIRD, SECOND.and(THIRD)],
    cpu: |launch, [value, ..]| cpu::addcdiv(launch, Scalar::Float(value)),
    derivatives: [
        |s| Ok(s.grad.clone()),
        |s| s.grad.mul(s.numbers[0])?.div(s.input(2)?),
        |s| {
            let divisor = s.input(2)?;
            let quotient = s.input(1)?.mul(-s.numbers[0])?.div(&divisor.mul(divisor)?)?;
            s.grad.mul(&quotient)
        },
    ],
};

pub(crate) static OPS: &[&OpInfo] = &[&LERP.info, &ADDCMUL.info, &ADDCDIV.info];
