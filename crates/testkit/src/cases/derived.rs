//! Operations that are made of others: one row each, and a gradient where there is one. Their forms
//! in place and with `out=` are copies of the result, which Python's tests cover.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{AddOptions, GluOptions, SoftminOptions, Tensor};

use super::input::{any, beyond_one, nonzero, positive};
use super::{Case, FLOATS};
use crate::oracle::{Array, binary, functions as oracle, unary};

fn numbers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = quotients();
    cases.extend(comparisons());
    cases.extend(of_one());
    cases.extend(unchanged());
    cases.extend(activations());
    cases
}

fn quotients() -> Vec<Case> {
    let two = || [any(&[3, 4]), nonzero(&[4])];
    vec![
        Case::new("true_divide", "torch.true_divide(a, b)", two())
            .run(|t| t[0].true_divide(&t[1]))
            .oracle(|x| binary::div(&x[0], &x[1]))
            .brief()
            .gradient(&[0, 1]),
        Case::new("floor_divide", "torch.floor_divide(a, b)", two())
            .run(|t| t[0].floor_divide(&t[1]))
            .oracle(|x| binary::rounded(&x[0], &x[1], f64::floor))
            .dtypes(&numbers())
            .taking_only_these()
            .brief(),
        Case::new("rsub", "torch.rsub(a, b, alpha=2)", two())
            .run(|t| t[0].rsub_with(&t[1], AddOptions::new().alpha(2)))
            .oracle(|x| binary::sub(&x[1], &x[0], 2.0))
            .dtypes(&numbers())
            .tolerance(4.0, 9.0)
            .brief()
            .gradient(&[0, 1]),
        Case::new("float_power", "torch.float_power(a, b)", [positive(&[3, 4]), any(&[4])])
            .run(|t| t[0].float_power(&t[1]))
            .oracle(|x| {
                let (a, b) = (x[0].cast(DType::F64), x[1].cast(DType::F64));
                binary::float(&a, &b, f64::powf)
            })
            .brief()
            .gradient(&[0, 1]),
        Case::new("ldexp", "torch.ldexp(a, b)", [any(&[3, 4]), any(&[4]).of(DType::I64)])
            .run(|t| t[0].ldexp(&t[1]))
            .oracle(|x| {
                let dtype = if x.dtype.is_float() { x.dtype } else { DType::F32 };
                let scaled = binary::float(&x[0].cast(DType::F64), &x[1], |a, b| a * b.exp2());
                scaled.cast(dtype)
            })
            .brief()
            .gradient(&[0]),
    ]
}

fn truth(value: bool) -> Result<Tensor> {
    Tensor::full(&[], value, DType::Bool)
}

fn comparisons() -> Vec<Case> {
    let two = || [any(&[3, 4]), any(&[4])];
    let is_close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-8 + 1e-5 * b.abs();
    vec![
        Case::new("isclose", "torch.isclose(a, b)", two())
            .run(|t| t[0].isclose(&t[1]))
            .oracle(move |x| binary::question(&x[0], &x[1], is_close))
            .brief(),
        Case::new("allclose", "torch.tensor(torch.allclose(a, a))", [any(&[3, 4])])
            .run(|t| truth(t[0].allclose(&t[0])?))
            .oracle(|_| Array::build(DType::Bool, &[], |_| true))
            .brief(),
        Case::new("equal", "torch.tensor(torch.equal(a, b))", [any(&[3, 4]), any(&[3, 4])])
            .run(|t| truth(t[0].equal(&t[1])?))
            .oracle(|x| {
                let same = binary::question(&x[0], &x[1], |a, b| a == b);
                let count =
                    crate::oracle::indices(&[3, 4]).filter(|i| same.at(i).is_true()).count();
                Array::build(DType::Bool, &[], |_| count == 12)
            })
            .brief(),
    ]
}

fn of_one() -> Vec<Case> {
    let row = |op, torch: &str, input| Case::new(op, format!("torch.{torch}"), [input]).brief();
    vec![
        row("square", "square(a)", any(&[3, 4]))
            .run(|t| t[0].square())
            .oracle(|x| binary::pow(&x[0], &Array::host(2i64)))
            .gradient(&[0]),
        row("deg2rad", "deg2rad(a)", any(&[3, 4]))
            .run(|t| t[0].deg2rad())
            .oracle(|x| unary::float(&x[0], f64::to_radians))
            .gradient(&[0]),
        row("rad2deg", "rad2deg(a)", any(&[3, 4]))
            .run(|t| t[0].rad2deg())
            .oracle(|x| unary::float(&x[0], f64::to_degrees))
            .gradient(&[0]),
        row("isreal", "isreal(a)", any(&[3, 4]))
            .run(|t| t[0].isreal())
            .oracle(|x| Array::build(DType::Bool, x[0].shape(), |_| true)),
        row("mvlgamma", "mvlgamma(a, 2)", beyond_one(&[3, 4]))
            .run(|t| t[0].mvlgamma(2))
            .oracle(|x| {
                let constant = 0.5 * std::f64::consts::PI.ln();
                unary::float(&x[0], |v| constant + oracle::lgamma(v) + oracle::lgamma(v - 0.5))
            })
            .dtypes(&[DType::F32, DType::F64])
            .taking_only_these()
            .tolerance(64.0, 2.0)
            .gradient(&[0]),
        row("sgn", "sgn(a)", nonzero(&[3, 4]))
            .run(|t| t[0].sgn())
            .oracle(|x| unary::sign(&x[0]))
            .gradient(&[0]),
    ]
}

/// Those that give a real tensor back.
fn unchanged() -> Vec<Case> {
    type Same = (&'static str, fn(&Tensor) -> Result<Tensor>);
    let rows: [Same; 6] = [
        ("conj", Tensor::conj),
        ("conj_physical", Tensor::conj_physical),
        ("real", Tensor::real),
        ("resolve_conj", Tensor::resolve_conj),
        ("resolve_neg", Tensor::resolve_neg),
        ("positive", Tensor::positive),
    ];
    rows.into_iter()
        .map(|(op, method)| {
            let dtypes = if op == "positive" { numbers() } else { DType::ALL.to_vec() };
            Case::new(op, format!("torch.{op}(a)"), [any(&[3, 4])])
                .run(move |t| method(&t[0]))
                .oracle(|x| x[0].clone())
                .dtypes(&dtypes)
                .plain()
                .gradient(&[0])
        })
        .collect()
}

fn activations() -> Vec<Case> {
    /// The numbers of "Self-normalizing neural networks".
    const SELU: [f64; 2] = [1.673_263_242_354_377_2, 1.050_700_987_355_480_5];
    let row = |op, torch: &str, new: fn(&Tensor) -> Result<Tensor>, oracle: fn(f64) -> f64| {
        Case::new(op, format!("torch.nn.functional.{torch}"), [nonzero(&[3, 4])])
            .run(move |t| new(&t[0]))
            .oracle(move |x| unary::float(&x[0], oracle))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 2.0)
            .brief()
            .gradient(&[0])
    };
    vec![
        row("celu", "celu(a)", Tensor::celu, |x| if x > 0.0 { x } else { x.exp_m1() }),
        row("selu", "selu(a)", Tensor::selu, |x| {
            SELU[1] * if x > 0.0 { x } else { SELU[0] * x.exp_m1() }
        }),
        row("rrelu", "rrelu(a)", Tensor::rrelu, |x| if x > 0.0 { x } else { x * 11.0 / 48.0 })
            .plain(),
        row("relu6", "relu6(a)", Tensor::relu6, |x| x.clamp(0.0, 6.0)),
        row("softsign", "softsign(a)", Tensor::softsign, |x| x / (1.0 + x.abs())),
        row("tanhshrink", "tanhshrink(a)", Tensor::tanhshrink, |x| x - x.tanh()),
        Case::new("glu", "torch.nn.functional.glu(a, 0)", [any(&[4, 3])])
            .run(|t| t[0].glu_with(GluOptions::new().dim(0)))
            .oracle(|x| {
                Array::build(x.dtype, &[2, 3], |i| {
                    let at = |row| x[0].at(&[row, i[1]]).to_f64();
                    at(i[0]) / (1.0 + (-at(i[0] + 2)).exp())
                })
            })
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 2.0)
            .brief()
            .gradient(&[0]),
        Case::new("softmin", "torch.nn.functional.softmin(a, 1)", [any(&[3, 4])])
            .run(|t| t[0].softmin_with(SoftminOptions::new().dim(1)))
            .oracle(|x| {
                Array::build(x.dtype, &[3, 4], |i| {
                    let at = |column| (-x[0].at(&[i[0], column]).to_f64()).exp();
                    at(i[1]) / (0..4).map(at).sum::<f64>()
                })
            })
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 1.0)
            .brief()
            .gradient(&[0]),
    ]
}
