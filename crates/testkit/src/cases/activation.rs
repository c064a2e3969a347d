//! Activations of networks, bounds, and functions of three operands.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{
    AddcmulOptions, ClampOptions, EluOptions, HardshrinkOptions, HardtanhOptions, LeakyReluOptions,
    SoftplusOptions, Tensor,
};

use super::input::{any, distinct, nonzero, positive};
use super::{Case, FLOATS};
use crate::oracle::{Array, binary, unary};

type New = fn(&Tensor) -> Result<Tensor>;

/// One activation: its call in PyTorch, ours, the oracle.
fn row(op: &'static str, torch: &str, new: New, oracle: fn(f64) -> f64) -> Case {
    Case::new(op, format!("torch.nn.functional.{torch}"), [distinct(&[2, 3, 4])])
        .run(move |t| new(&t[0]))
        .oracle(move |x| unary::keep(&x[0], |v| v, oracle))
        .dtypes(&FLOATS)
        .taking_only_these()
        .tolerance(8.0, 1.0)
        .gradient(&[0])
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

fn hardsigmoid(x: f64) -> f64 {
    ((x + 3.0) / 6.0).clamp(0.0, 1.0)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        row(
            "elu",
            "elu(a, 1.5)",
            |x| x.elu_with(EluOptions::new().alpha(1.5)),
            |x| if x > 0.0 { x } else { 1.5 * x.exp_m1() },
        ),
        row(
            "leaky_relu",
            "leaky_relu(a, 0.25)",
            |x| x.leaky_relu_with(LeakyReluOptions::new().negative_slope(0.25)),
            |x| if x > 0.0 { x } else { 0.25 * x },
        ),
        row(
            "hardtanh",
            "hardtanh(a, -0.6, 0.7)",
            |x| x.hardtanh_with(HardtanhOptions::new().min_val(-0.6).max_val(0.7)),
            |x| x.clamp(-0.6, 0.7),
        ),
        row(
            "softplus",
            "softplus(a, 2.0)",
            |x| x.softplus_with(SoftplusOptions::new().beta(2.0)),
            |x| softplus(2.0 * x) / 2.0,
        ),
        row("hardshrink", "hardshrink(a)", Tensor::hardshrink, |x| {
            if x.abs() <= 0.5 { 0.0 } else { x }
        }),
        row("softshrink", "softshrink(a)", Tensor::softshrink, |x| {
            x.signum() * (x.abs() - 0.5).max(0.0)
        }),
        row(
            "threshold",
            "threshold(a, 0.3, -2.0)",
            |x| x.threshold(0.3, -2.0),
            |x| if x > 0.3 { x } else { -2.0 },
        ),
        row("silu", "silu(a)", Tensor::silu, |x| x * sigmoid(x)),
        row("mish", "mish(a)", Tensor::mish, |x| x * softplus(x).tanh()),
        row("logsigmoid", "logsigmoid(a)", Tensor::logsigmoid, |x| sigmoid(x).ln()).plain(),
        row("hardsigmoid", "hardsigmoid(a)", Tensor::hardsigmoid, hardsigmoid),
        row("hardswish", "hardswish(a)", Tensor::hardswish, |x| x * hardsigmoid(x)),
    ];
    let softshrink = HardshrinkOptions::new;
    cases.extend([
        written(
            "softplus",
            "softplus(a, out=b)",
            |x, out| x.softplus_with_out(SoftplusOptions::new(), out),
            softplus,
        ),
        written(
            "logsigmoid",
            "log_sigmoid(a, out=b)",
            |x, out| x.logsigmoid_out(out),
            |x| sigmoid(x).ln(),
        ),
        written(
            "hardshrink",
            "hardshrink(a, out=b)",
            move |x, out| x.hardshrink_with_out(softshrink(), out),
            |x| if x.abs() <= 0.5 { 0.0 } else { x },
        ),
        written(
            "softshrink",
            "softshrink(a, out=b)",
            move |x, out| x.softshrink_with_out(softshrink(), out),
            |x| x.signum() * (x.abs() - 0.5).max(0.0),
        ),
    ]);
    cases.extend(whole());
    cases.push(prelu());
    cases
}

fn written(
    op: &'static str,
    torch: &str,
    out: impl Fn(&Tensor, &Tensor) -> Result<()> + Send + Sync + 'static,
    oracle: fn(f64) -> f64,
) -> Case {
    let home = if op == "hardshrink" { "torch." } else { "torch._C._nn." };
    Case::new(op, format!("{home}{torch}"), [any(&[3, 4]), any(&[3, 4])])
        .writes(1, move |t| out(&t[0], &t[1]))
        .oracle(move |x| unary::keep(&x[0], |v| v, oracle))
        .dtypes(&FLOATS)
        .taking_only_these()
        .tolerance(8.0, 1.0)
        .brief()
}

/// Those that take integers too.
fn whole() -> Vec<Case> {
    let integers: Vec<DType> =
        DType::ALL.into_iter().filter(|&d| !d.is_float() && d != DType::Bool).collect();
    vec![
        Case::new("hardtanh", "torch.clamp(a, -1, 2)", [any(&[3, 4])])
            .run(|t| t[0].hardtanh_with(HardtanhOptions::new().min_val(-1.0).max_val(2.0)))
            .oracle(|x| unary::keep(&x[0], |v| v.clamp(-1, 2), |v| v))
            .dtypes(&integers)
            .taking_only_these()
            .plain(),
        Case::new("threshold", "torch.nn.functional.threshold(a, 1, 7)", [any(&[3, 4])])
            .run(|t| t[0].threshold(1.0, 7.0))
            .oracle(|x| unary::keep(&x[0], |v| if v > 1 { v } else { 7 }, |v| v))
            .dtypes(&integers)
            .taking_only_these()
            .plain(),
    ]
}

fn prelu() -> Case {
    Case::new("prelu", "torch.prelu(a, b)", [nonzero(&[2, 3, 4]), any(&[3])])
        .run(|t| t[0].prelu(&t[1]))
        .oracle(|x| {
            let (values, weights) = (&x[0], &x[1]);
            Array::build(values.dtype(), values.shape(), |i| {
                let v = values.at(i).to_f64();
                if v > 0.0 { v } else { v * weights.at(&i[1..2]).to_f64() }
            })
        })
        .dtypes(&FLOATS)
        .taking_only_these()
        .gradient(&[0, 1])
}

pub(super) fn clamp_cases() -> Vec<Case> {
    let numbers: Vec<DType> = DType::ALL.into_iter().filter(|&d| d != DType::Bool).collect();
    let both = || ClampOptions::new().min(-1).max(2);
    let between = |x: &Array| unary::keep(x, |v| v.clamp(-1, 2), |v| v.clamp(-1.0, 2.0));
    let bounded =
        |x: &Array, low: &Array, high: &Array| binary::minimum(&binary::maximum(x, low), high);
    let mut rows = vec![
        Case::new("clamp", "torch.clamp(a, -1, 2)", [distinct(&[2, 3, 4])])
            .run(move |t| t[0].clamp_with(both()))
            .oracle(move |x| between(&x[0]))
            .dtypes(&numbers)
            .taking_only_these()
            .gradient(&[0]),
        Case::new("clamp", "torch.clamp(a, b, c)", [distinct(&[3, 4]), any(&[4]), any(&[3, 1])])
            .run(|t| t[0].clamp_with(ClampOptions::new().min(&t[1]).max(&t[2])))
            .oracle(move |x| bounded(&x[0], &x[1], &x[2]))
            .dtypes(&numbers)
            .taking_only_these()
            .gradient(&[0, 1, 2]),
        Case::new("clamp", "a.clamp_(-1, 2)", [distinct(&[3, 4])])
            .writes(0, move |t| t[0].clamp_with_(both()).map(drop))
            .oracle(move |x| between(&x[0]))
            .dtypes(&numbers)
            .taking_only_these()
            .brief(),
        Case::new("clamp", "torch.clamp(a, -1, 2, out=b)", [distinct(&[3, 4]), any(&[3, 4])])
            .writes(1, move |t| t[0].clamp_with_out(both(), &t[1]))
            .oracle(move |x| between(&x[0]))
            .dtypes(&numbers)
            .taking_only_these()
            .brief(),
    ];
    rows.extend([
        Case::new("clamp_min", "torch.clamp_min(a, b)", [distinct(&[3, 4]), any(&[4])])
            .run(|t| t[0].clamp_min(&t[1]))
            .oracle(|x| binary::maximum(&x[0], &x[1]))
            .gradient(&[0, 1]),
        Case::new("clamp_min", "a.clamp_min_(b)", [distinct(&[3, 4]), any(&[4])])
            .writes(0, |t| t[0].clamp_min_(&t[1]).map(drop))
            .oracle(|x| binary::maximum(&x[0], &x[1]))
            .brief(),
        Case::new(
            "clamp_min",
            "torch.clamp_min(a, b, out=c)",
            [distinct(&[3, 4]), any(&[4]), any(&[3, 4])],
        )
        .writes(2, |t| t[0].clamp_min_out(&t[1], &t[2]))
        .oracle(|x| binary::maximum(&x[0], &x[1]))
        .brief(),
        Case::new("clamp_max", "torch.clamp_max(a, b)", [distinct(&[3, 4]), any(&[4])])
            .run(|t| t[0].clamp_max(&t[1]))
            .oracle(|x| binary::minimum(&x[0], &x[1]))
            .gradient(&[0, 1]),
        Case::new("clamp_max", "a.clamp_max_(b)", [distinct(&[3, 4]), any(&[4])])
            .writes(0, |t| t[0].clamp_max_(&t[1]).map(drop))
            .oracle(|x| binary::minimum(&x[0], &x[1]))
            .brief(),
        Case::new(
            "clamp_max",
            "torch.clamp_max(a, b, out=c)",
            [distinct(&[3, 4]), any(&[4]), any(&[3, 4])],
        )
        .writes(2, |t| t[0].clamp_max_out(&t[1], &t[2]))
        .oracle(|x| binary::minimum(&x[0], &x[1]))
        .brief(),
    ]);
    rows
}

/// The sum of the first and `value` times a function of the others.
fn added(x: &Array, a: &Array, b: &Array, value: f64, divides: bool) -> Array {
    let both = if divides { binary::div(a, b) } else { binary::mul(a, b) };
    binary::add(x, &both, value)
}

pub(super) fn ternary_cases() -> Vec<Case> {
    let numbers: Vec<DType> = DType::ALL.into_iter().filter(|&d| d != DType::Bool).collect();
    let three = || [any(&[2, 3, 4]), any(&[4]), nonzero(&[3, 1])];
    let twice = || AddcmulOptions::new().value(2);
    let out = || [any(&[3, 4]), any(&[4]), nonzero(&[3, 1]), any(&[3, 4])];
    let mut rows = vec![
        Case::new("addcmul", "torch.addcmul(a, b, c, value=2)", three())
            .run(move |t| t[0].addcmul_with(&t[1], &t[2], twice()))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, false))
            .dtypes(&numbers)
            .taking_only_these()
            .tolerance(4.0, 20.0)
            .gradient(&[0, 1, 2]),
        Case::new("addcmul", "a.addcmul_(b, c, value=2)", three())
            .writes(0, move |t| t[0].addcmul_with_(&t[1], &t[2], twice()).map(drop))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, false))
            .dtypes(&numbers)
            .taking_only_these()
            .tolerance(4.0, 20.0)
            .brief(),
        Case::new("addcmul", "torch.addcmul(a, b, c, value=2, out=d)", out())
            .writes(3, move |t| t[0].addcmul_with_out(&t[1], &t[2], twice(), &t[3]))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, false))
            .dtypes(&numbers)
            .taking_only_these()
            .tolerance(4.0, 20.0)
            .brief(),
        Case::new("addcdiv", "torch.addcdiv(a, b, c, value=2)", three())
            .run(move |t| t[0].addcdiv_with(&t[1], &t[2], twice()))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, true))
            .dtypes(&FLOATS)
            .tolerance(4.0, 20.0)
            .gradient(&[0, 1, 2]),
        Case::new("addcdiv", "a.addcdiv_(b, c, value=2)", three())
            .writes(0, move |t| t[0].addcdiv_with_(&t[1], &t[2], twice()).map(drop))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, true))
            .dtypes(&FLOATS)
            .tolerance(4.0, 20.0)
            .brief(),
        Case::new("addcdiv", "torch.addcdiv(a, b, c, value=2, out=d)", out())
            .writes(3, move |t| t[0].addcdiv_with_out(&t[1], &t[2], twice(), &t[3]))
            .oracle(|x| added(&x[0], &x[1], &x[2], 2.0, true))
            .dtypes(&FLOATS)
            .tolerance(4.0, 20.0)
            .brief(),
    ];
    let toward = |a: &Array, b: &Array, weight: &Array| {
        let way = binary::mul(&binary::sub(b, a, 1.0), weight);
        binary::add(a, &way, 1.0)
    };
    rows.extend([
        Case::new("lerp", "torch.lerp(a, b, c)", [any(&[2, 3, 4]), any(&[3, 4]), positive(&[4])])
            .run(|t| t[0].lerp(&t[1], &t[2]))
            .oracle(move |x| toward(&x[0], &x[1], &x[2]))
            .dtypes(&[DType::F32, DType::F64])
            .taking_only_these()
            .tolerance(8.0, 30.0)
            .gradient(&[0, 1, 2]),
        Case::new("lerp", "torch.lerp(a, b, 0.25)", [any(&[2, 3, 4]), any(&[3, 4])])
            .run(|t| t[0].lerp(&t[1], 0.25))
            .oracle(move |x| toward(&x[0], &x[1], &Array::host(0.25)))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 6.0)
            .gradient(&[0, 1]),
        Case::new("lerp", "a.lerp_(b, 0.25)", [any(&[3, 4]), any(&[4])])
            .writes(0, |t| t[0].lerp_(&t[1], 0.25).map(drop))
            .oracle(move |x| toward(&x[0], &x[1], &Array::host(0.25)))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 6.0)
            .brief(),
        Case::new("lerp", "torch.lerp(a, b, 0.25, out=c)", [any(&[3, 4]), any(&[4]), any(&[3, 4])])
            .writes(2, |t| t[0].lerp_out(&t[1], 0.25, &t[2]))
            .oracle(move |x| toward(&x[0], &x[1], &Array::host(0.25)))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 6.0)
            .brief(),
    ]);
    rows
}
