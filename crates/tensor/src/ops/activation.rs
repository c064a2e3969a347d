//! Activations of networks with host numbers, one row each, and their fused derivatives. Methods
//! are in `api/activation.rs`; activations without numbers are entries of `unary/`.

use plimsoll_core::Result;
use plimsoll_cuda::source_files;
use plimsoll_kernels::Argument;
use plimsoll_kernels::cpu::{activation as cpu, ternary};

use super::pointwise::{self, PointwiseRow, Slopes, fused};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::operation::{DTypes, Home, Input, OnCuda, OpInfo, Out, Promotion, Saves};
use plimsoll_memory::Site;

/// A function of floats that `torch.nn.functional` has.
pub(crate) const FUNCTIONAL: OpInfo = OpInfo {
    home: Home::Functional,
    family: "activation",
    differentiable: true,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::ACTIVATION),
    dtypes: DTypes::FLOATS,
    inputs: &[Input::Operand],
    promotion: Promotion::Common,
    ..OpInfo::BARE
};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { name, signatures, ..FUNCTIONAL }
}

/// With a form that writes into a given tensor.
const fn into(info: OpInfo) -> OpInfo {
    OpInfo { out: Out::Cast, ..info }
}

/// A row that needs nothing more.
const fn as_is(info: OpInfo) -> OpInfo {
    info
}

/// At the top level of PyTorch.
const fn at_top(info: OpInfo) -> OpInfo {
    OpInfo { home: Home::Torch, ..info }
}

/// The fused derivative where nobody differentiates it, else the gradient times `slope`, which is
/// made of operations.
#[track_caller]
fn chained(
    slopes: &Slopes<'_>,
    row: &'static PointwiseRow,
    slope: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    chained_from(slopes, slopes.input(0)?, row, slope)
}

/// The same from the tensor that the row's `saves` name.
#[track_caller]
fn chained_from(
    slopes: &Slopes<'_>,
    saved: &Tensor,
    row: &'static PointwiseRow,
    slope: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if is_grad_enabled() {
        return slopes.grad.mul(&slope(saved)?);
    }
    pointwise::new(row, &[slopes.grad, saved], slopes.numbers, Site::caller())
}

/// 1 where `x` is above `low`, else `below`, in x's dtype.
#[track_caller]
fn step(x: &Tensor, low: f64, above: f64, below: f64) -> Result<Tensor> {
    x.gt(low)?.to_dtype(x.dtype(), Site::caller())?.mul(above - below)?.add(below)
}

const X: [Saves; 3] = [Saves::input(0), Saves::NOTHING, Saves::NOTHING];
/// Of forms in place whose result tells the derivative: nothing of what was there is kept.
const Y: [Saves; 3] = [Saves::output(0), Saves::NOTHING, Saves::NOTHING];

/// The derivative by the only input.
const fn only(f: fn(&Slopes<'_>) -> Result<Tensor>) -> [fn(&Slopes<'_>) -> Result<Tensor>; 3] {
    [f, pointwise::no_derivative, pointwise::no_derivative]
}

pub(crate) static ELU: PointwiseRow = PointwiseRow {
    info: info("elu", &["elu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor"]),
    saves: X,
    cpu: |launch, [alpha, scale, input_scale]| cpu::elu(launch, alpha, scale, input_scale),
    derivatives: only(|s| {
        static FUSED: PointwiseRow = PointwiseRow {
            info: fused(FUNCTIONAL, "elu_backward"),
            cpu: |launch, [alpha, scale, input]| cpu::elu_backward(launch, alpha, scale, input),
            ..PointwiseRow::BARE
        };
        let [alpha, scale, input_scale] = s.numbers;
        chained(s, &FUSED, |x| {
            let below = x.mul(input_scale)?.exp()?.mul(input_scale * alpha * scale)?;
            Tensor::where_(&x.gt(0.0)?, scale, &below)
        })
    }),
};

/// In place, with an `alpha` that is not negative: where the result is, its slope is as far from 0
/// as the result is from its least.
pub(crate) static ELU_OVER: PointwiseRow = PointwiseRow {
    info: info("elu", &[]),
    saves: Y,
    cpu: |launch, [alpha, scale, input_scale]| cpu::elu(launch, alpha, scale, input_scale),
    derivatives: only(|s| {
        let [alpha, scale, input_scale] = s.numbers;
        let y = s.backward.output(0)?;
        let below = y.add(alpha * scale)?.mul(input_scale)?;
        // What is no number is not below, as in PyTorch.
        s.grad.mul(&Tensor::where_(&y.le(0.0)?, &below, scale)?)
    }),
};

static LEAKY_RELU_BACKWARD: PointwiseRow = PointwiseRow {
    info: fused(FUNCTIONAL, "leaky_relu_backward"),
    cpu: |launch, [slope, ..]| cpu::leaky_relu_backward(launch, slope),
    ..PointwiseRow::BARE
};

pub(crate) static LEAKY_RELU: PointwiseRow = PointwiseRow {
    info: info(
        "leaky_relu",
        &["leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor"],
    ),
    saves: X,
    cpu: |launch, [slope, ..]| cpu::leaky_relu(launch, slope),
    derivatives: only(|s| chained(s, &LEAKY_RELU_BACKWARD, |x| step(x, 0.0, 1.0, s.numbers[0]))),
};

/// In place, with a slope that is not negative: the result is above 0 where the input was.
pub(crate) static LEAKY_RELU_OVER: PointwiseRow = PointwiseRow {
    info: info("leaky_relu", &[]),
    saves: Y,
    cpu: |launch, [slope, ..]| cpu::leaky_relu(launch, slope),
    derivatives: only(|s| {
        let y = s.backward.output(0)?;
        chained_from(s, y, &LEAKY_RELU_BACKWARD, |y| step(y, 0.0, 1.0, s.numbers[0]))
    }),
};

pub(crate) static HARDTANH: PointwiseRow = PointwiseRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        ..info(
            "hardtanh",
            &[
                "hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False) -> Tensor",
            ],
        )
    },
    saves: X,
    cpu: |launch, [low, high, _]| {
        ternary::clamp(launch, Argument::Number(low.into()), Argument::Number(high.into()))
    },
    derivatives: only(|s| {
        static FUSED: PointwiseRow = PointwiseRow {
            info: fused(FUNCTIONAL, "hardtanh_backward"),
            cpu: |launch, [low, high, _]| cpu::hardtanh_backward(launch, low, high),
            ..PointwiseRow::BARE
        };
        let [low, high, _] = s.numbers;
        chained(s, &FUSED, |x| {
            let within = x.gt(low)?.mul(&x.lt(high)?)?;
            within.to_dtype(x.dtype(), Site::caller())
        })
    }),
};

pub(crate) static SOFTPLUS: PointwiseRow = PointwiseRow {
    info: into(info(
        "softplus",
        &["softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor"],
    )),
    saves: X,
    cpu: |launch, [beta, threshold, _]| cpu::softplus(launch, beta, threshold),
    derivatives: only(|s| {
        static FUSED: PointwiseRow = PointwiseRow {
            info: fused(FUNCTIONAL, "softplus_backward"),
            cpu: |launch, [beta, threshold, _]| cpu::softplus_backward(launch, beta, threshold),
            ..PointwiseRow::BARE
        };
        let [beta, threshold, _] = s.numbers;
        chained(s, &FUSED, |x| {
            let scaled = x.mul(beta)?;
            Tensor::where_(&scaled.gt(threshold)?, 1.0, &scaled.sigmoid()?)
        })
    }),
};

/// A row of an activation without numbers: what it computes, and its derivative twice.
macro_rules! plain {
    ($row:ident: $wrap:ident, $name:literal, $signature:literal, $kernel:path, $backward:literal, $fused:path, |$x:ident| $slope:expr) => {
        pub(crate) static $row: PointwiseRow = PointwiseRow {
            info: $wrap(info($name, &[$signature])),
            saves: X,
            cpu: |launch, _| $kernel(launch),
            derivatives: only(|s| {
                static FUSED: PointwiseRow = PointwiseRow {
                    info: fused(FUNCTIONAL, $backward),
                    cpu: |launch, _| $fused(launch),
                    ..PointwiseRow::BARE
                };
                chained(s, &FUSED, |$x| $slope)
            }),
        };
    };
}

plain!(
    SILU: as_is,
    "silu",
    "silu(Tensor input, bool inplace=False) -> Tensor",
    cpu::silu,
    "silu_backward",
    cpu::silu_backward,
    |x| {
        let s = x.sigmoid()?;
        s.mul(&x.mul(&s.rsub(1.0)?)?.add(1.0)?)
    }
);
plain!(
    MISH: as_is,
    "mish",
    "mish(Tensor input, bool inplace=False) -> Tensor",
    cpu::mish,
    "mish_backward",
    cpu::mish_backward,
    |x| {
        let t = x.softplus()?.tanh()?;
        t.add(&x.mul(&x.sigmoid()?)?.mul(&t.mul(&t)?.rsub(1.0)?)?)
    }
);
plain!(
    LOGSIGMOID: into,
    "logsigmoid",
    "logsigmoid(Tensor input) -> Tensor",
    cpu::logsigmoid,
    "logsigmoid_backward",
    cpu::logsigmoid_backward,
    |x| x.neg()?.sigmoid()
);
plain!(
    HARDSIGMOID: as_is,
    "hardsigmoid",
    "hardsigmoid(Tensor input, bool inplace=False) -> Tensor",
    cpu::hardsigmoid,
    "hardsigmoid_backward",
    cpu::hardsigmoid_backward,
    |x| x.gt(-3.0)?.mul(&x.lt(3.0)?)?.to_dtype(x.dtype(), Site::caller())?.mul(1.0 / 6.0)
);
plain!(
    HARDSWISH: as_is,
    "hardswish",
    "hardswish(Tensor input, bool inplace=False) -> Tensor",
    cpu::hardswish,
    "hardswish_backward",
    cpu::hardswish_backward,
    |x| {
        let inside = x.div(3.0)?.add(0.5)?;
        let above = step(x, 0.0, 1.0, 0.0)?;
        Tensor::where_(&x.abs()?.lt(3.0)?, &inside, &above)
    }
);

/// The derivative of both shrinking functions: 1 but near 0.
static SHRINK_BACKWARD: PointwiseRow = PointwiseRow {
    info: fused(FUNCTIONAL, "shrink_backward"),
    cpu: |launch, [lambd, ..]| cpu::shrink_backward(launch, lambd),
    ..PointwiseRow::BARE
};

#[track_caller]
fn shrink_slope(s: &Slopes<'_>) -> Result<Tensor> {
    let lambd = s.numbers[0];
    chained(s, &SHRINK_BACKWARD, |x| {
        let near = x.ge(-lambd)?.mul(&x.le(lambd)?)?;
        near.logical_not()?.to_dtype(x.dtype(), Site::caller())
    })
}

pub(crate) static HARDSHRINK: PointwiseRow = PointwiseRow {
    info: at_top(into(info("hardshrink", &["hardshrink(Tensor self, float lambd=0.5) -> Tensor"]))),
    saves: X,
    cpu: |launch, [lambd, ..]| cpu::hardshrink(launch, lambd),
    derivatives: only(shrink_slope),
};

pub(crate) static SOFTSHRINK: PointwiseRow = PointwiseRow {
    info: into(info("softshrink", &["softshrink(Tensor input, float lambd=0.5) -> Tensor"])),
    saves: X,
    cpu: |launch, [lambd, ..]| cpu::softshrink(launch, lambd),
    derivatives: only(shrink_slope),
};

pub(crate) static THRESHOLD: PointwiseRow = PointwiseRow {
    info: OpInfo {
        dtypes: DTypes::NUMBERS,
        ..info(
            "threshold",
            &[
                "threshold(Tensor input, float threshold, float value, bool inplace=False) -> Tensor",
            ],
        )
    },
    saves: X,
    cpu: |launch, [threshold, value, _]| cpu::threshold(launch, threshold, value),
    derivatives: only(|s| {
        static FUSED: PointwiseRow = PointwiseRow {
            info: fused(FUNCTIONAL, "threshold_backward"),
            cpu: |launch, [threshold, ..]| cpu::threshold_backward(launch, threshold),
            ..PointwiseRow::BARE
        };
        let threshold = s.numbers[0];
        chained(s, &FUSED, |x| step(x, threshold, 1.0, 0.0))
    }),
};

/// Its weight has the input's rank here, with as many elements along dimension 1 as the input, or
/// one.
pub(crate) static PRELU: PointwiseRow = PointwiseRow {
    info: OpInfo {
        promotion: Promotion::None,
        inputs: &[Input::Given],
        ..at_top(info("prelu", &["prelu(Tensor self, Tensor weight) -> Tensor"]))
    },
    saves: [Saves::input(0).and(Saves::input(1)), Saves::input(0), Saves::NOTHING],
    cpu: |launch, _| cpu::prelu(launch),
    derivatives: [
        |s| {
            let (x, weight) = (s.input(0)?, s.input(1)?);
            Tensor::where_(&x.gt(0.0)?, s.grad, &weight.mul(s.grad)?)
        },
        |s| {
            let x = s.input(0)?;
            Tensor::where_(&x.gt(0.0)?, 0.0, &x.mul(s.grad)?)
        },
        pointwise::no_derivative,
    ],
};

pub(crate) static OPS: &[&OpInfo] = &[
    &ELU.info,
    &LEAKY_RELU.info,
    &HARDTANH.info,
    &SOFTPLUS.info,
    &HARDSHRINK.info,
    &SOFTSHRINK.info,
    &THRESHOLD.info,
    &PRELU.info,
    &SILU.info,
    &MISH.info,
    &LOGSIGMOID.info,
    &HARDSIGMOID.info,
    &HARDSWISH.info,
];
