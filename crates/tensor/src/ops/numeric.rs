//! Functions of one input with host numbers that are no activations: rounding to decimals, odds,
//! replaced infinities, derivatives of the gamma function. Methods are in `api/numeric.rs`.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{call, rounding, special};

use super::pointwise::{PointwiseRow, Slopes, no_derivative};
use crate::Tensor;
use crate::operation::{DTypes, Input, OnCuda, OpInfo, Out, Promotion, Saves};

const FLOAT: OpInfo = OpInfo {
    family: "numeric",
    differentiable: true,
    in_place: true,
    out: Out::Cast,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::SPECIAL),
    dtypes: DTypes::FLOATS,
    inputs: &[Input::Operand],
    promotion: Promotion::Float,
    ..OpInfo::BARE
};

const X: [Saves; 3] = [Saves::input(0), Saves::NOTHING, Saves::NOTHING];

const fn only(f: fn(&Slopes<'_>) -> Result<Tensor>) -> [fn(&Slopes<'_>) -> Result<Tensor>; 3] {
    [f, no_derivative, no_derivative]
}

/// Its number is `eps`, or NaN if there is none.
pub(crate) static LOGIT: PointwiseRow = PointwiseRow {
    info: OpInfo {
        name: "logit",
        signatures: &["logit(Tensor self, float? eps=None) -> Tensor"],
        ..FLOAT
    },
    saves: X,
    cpu: |launch, [eps, ..]| {
        let eps = if eps.is_nan() { None } else { Some(eps) };
        let round = launch.inputs.first().map_or(DType::F64, |input| input.dtype());
        call::one_with(launch, (eps, call::rounding(round)), special::logit)
    },
    derivatives: only(|s| {
        let (x, eps) = (s.input(0)?, s.numbers[0]);
        let slope = x.mul(&x.rsub(1.0)?)?.reciprocal()?;
        // Without `eps` there is nothing outside 0 to 1; with it the result stands still there.
        let (low, beyond) = if eps.is_nan() { (0.0, f64::NAN) } else { (eps, 0.0) };
        let inside = x.ge(low)?.logical_and(&x.le(1.0 - low)?)?;
        s.grad.mul(&Tensor::where_(&inside, &slope, beyond)?)
    }),
};

/// Its numbers stand for NaN, infinity and minus infinity.
pub(crate) static NAN_TO_NUM: PointwiseRow = PointwiseRow {
    info: OpInfo {
        name: "nan_to_num",
        signatures: &[
            "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        ],
        dtypes: DTypes::ALL,
        out: Out::Exact,
        promotion: Promotion::Common,
        cuda: OnCuda::Kernels(&source_files::FUNCTIONS),
        ..FLOAT
    },
    saves: X,
    cpu: |launch, numbers| rounding::nan_to_num(launch, numbers),
    derivatives: only(|s| s.grad.mul(&s.input(0)?.isfinite()?)),
};

/// Its number is the order.
pub(crate) static POLYGAMMA: PointwiseRow = PointwiseRow {
    info: OpInfo {
        name: "polygamma",
        signatures: &[
            "polygamma(int n, Tensor self) -> Tensor",
            "polygamma(Tensor self, int n) -> Tensor",
        ],
        ..FLOAT
    },
    saves: X,
    cpu: |launch, [order, ..]| {
        let wide = launch.inputs.first().is_some_and(|input| input.dtype() == DType::F64);
        let function = if wide { special::polygamma } else { special::polygamma32 };
        call::one_with(launch, order as i64, function)
    },
    derivatives: only(|s| s.grad.mul(&s.input(0)?.polygamma(s.numbers[0] as i64 + 1)?)),
};

/// [`Tensor::round`] to decimals, which are its number.
pub(crate) static ROUND_DECIMALS: PointwiseRow = PointwiseRow {
    info: OpInfo {
        name: "round_decimals",
        promotion: Promotion::Common,
        cuda: OnCuda::Kernels(&source_files::FUNCTIONS),
        ..FLOAT
    },
    saves: [Saves::NOTHING; 3],
    cpu: |launch, [decimals, ..]| rounding::round_decimals(launch, decimals as i64),
    derivatives: only(|s| s.grad.zeros_like()),
};

pub(crate) static OPS: &[&OpInfo] = &[&LOGIT.info, &NAN_TO_NUM.info, &POLYGAMMA.info];
