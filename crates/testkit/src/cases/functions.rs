//! The long tail of functions of one element: a line each with its forms, its oracle and the values
//! that it is smooth on. The hotter ones are in `unary.rs`.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{LogitOptions, NanToNumOptions, RoundOptions, Tensor};

use super::input::{any, beyond_one, fraction, nonzero, part, positive, special};
use super::{Case, FLOATS};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::{Array, functions as oracle, unary};

type New = fn(&Tensor) -> Result<Tensor>;
type InPlace = fn(&Tensor) -> Result<&Tensor>;
type Out = fn(&Tensor, &Tensor) -> Result<()>;

/// What the oracle says.
#[derive(Clone, Copy)]
enum Oracle {
    /// A function of floats; integers become float32.
    Float(fn(f64) -> f64),
    /// Whether something holds.
    Truth(fn(f64) -> bool),
    /// The dtype stays: of integers, and of floats.
    Keep(fn(i64) -> i64, fn(f64) -> f64),
}

impl Oracle {
    fn of(self, x: &Array) -> Array {
        match self {
            Oracle::Float(f) => unary::float(x, f),
            Oracle::Truth(f) => Array::build(DType::Bool, x.shape(), |i| f(x.at(i).to_f64())),
            Oracle::Keep(int, float) => unary::keep(x, int, float),
        }
    }
}

struct Function {
    op: &'static str,
    forms: (New, InPlace, Out),
    oracle: Oracle,
    /// The values that it has a derivative on.
    domain: fn(&[usize]) -> super::Input,
    /// Whether the oracle knows the edges of dtypes.
    edges: bool,
    ulps: f64,
    /// What cancels.
    floor: f64,
}

fn function(op: &'static str, forms: (New, InPlace, Out), oracle: Oracle) -> Function {
    Function { op, forms, oracle, domain: any, edges: true, ulps: 4.0, floor: 0.0 }
}

impl Function {
    fn on(self, domain: fn(&[usize]) -> super::Input) -> Function {
        Function { domain, ..self }
    }

    /// An oracle that is good for the domain alone, and to so many units.
    fn within(self, ulps: f64, floor: f64) -> Function {
        Function { edges: false, ulps, floor, ..self }
    }
}

/// The three forms of a method, and its name.
macro_rules! forms {
    ($name:ident, $in_place:ident, $into:ident, $oracle:expr) => {
        function(stringify!($name), (Tensor::$name, Tensor::$in_place, Tensor::$into), $oracle)
    };
}

fn plain() -> Vec<Function> {
    use Oracle::{Float, Keep, Truth};
    vec![
        forms!(exp2, exp2_, exp2_out, Float(f64::exp2)),
        forms!(expm1, expm1_, expm1_out, Float(f64::exp_m1)),
        forms!(log10, log10_, log10_out, Float(f64::log10)).on(positive),
        forms!(log2, log2_, log2_out, Float(f64::log2)).on(positive),
        forms!(acos, acos_, acos_out, Float(f64::acos)).on(fraction),
        forms!(acosh, acosh_, acosh_out, Float(oracle::acosh)).on(beyond_one),
        forms!(angle, angle_, angle_out, Float(oracle::angle)).on(nonzero),
        forms!(asin, asin_, asin_out, Float(f64::asin)).on(fraction),
        forms!(asinh, asinh_, asinh_out, Float(oracle::asinh)),
        forms!(atan, atan_, atan_out, Float(f64::atan)),
        forms!(atanh, atanh_, atanh_out, Float(f64::atanh)).on(fraction),
        forms!(cos, cos_, cos_out, Float(f64::cos)).within(8.0, 0.0),
        forms!(cosh, cosh_, cosh_out, Float(f64::cosh)),
        forms!(sin, sin_, sin_out, Float(f64::sin)).within(8.0, 0.0),
        forms!(sinh, sinh_, sinh_out, Float(f64::sinh)),
        forms!(tan, tan_, tan_out, Float(f64::tan)).on(fraction).within(8.0, 0.0),
        forms!(ceil, ceil_, ceil_out, Keep(|v| v, f64::ceil)),
        forms!(floor, floor_, floor_out, Keep(|v| v, f64::floor)),
        forms!(frac, frac_, frac_out, Keep(|v| v, f64::fract)),
        forms!(round, round_, round_out, Keep(|v| v, f64::round_ties_even)),
        forms!(trunc, trunc_, trunc_out, Keep(|v| v, f64::trunc)),
        forms!(isfinite, isfinite_, isfinite_out, Truth(f64::is_finite)),
        forms!(isinf, isinf_, isinf_out, Truth(f64::is_infinite)),
        forms!(isnan, isnan_, isnan_out, Truth(f64::is_nan)),
        forms!(isneginf, isneginf_, isneginf_out, Truth(|v| v == f64::NEG_INFINITY)),
        forms!(isposinf, isposinf_, isposinf_out, Truth(|v| v == f64::INFINITY)),
        forms!(logical_not, logical_not_, logical_not_out, Truth(|v| v == 0.0)),
        forms!(signbit, signbit_, signbit_out, Truth(|v| v.is_sign_negative() && !v.is_nan()))
            .within(4.0, 0.0),
        forms!(digamma, digamma_, digamma_out, Float(oracle::digamma))
            .on(positive)
            .within(64.0, 1.0),
        forms!(erfc, erfc_, erfc_out, Float(oracle::erfc)).within(64.0, 0.0),
        forms!(erfinv, erfinv_, erfinv_out, Float(oracle::erfinv)).on(fraction).within(64.0, 0.0),
        forms!(i0, i0_, i0_out, Float(|x| oracle::modified_first(0, x))).within(64.0, 0.0),
        forms!(lgamma, lgamma_, lgamma_out, Float(oracle::lgamma)).on(positive).within(64.0, 1.0),
        forms!(sinc, sinc_, sinc_out, Float(oracle::sinc)).on(nonzero).within(16.0, 1.0),
    ]
}

fn special_module() -> Vec<Function> {
    use Oracle::Float;
    macro_rules! special {
        ($name:ident, $in_place:ident, $into:ident, $domain:ident, $oracle:expr) => {
            forms!($name, $in_place, $into, Float($oracle)).on($domain).within(256.0, 0.25)
        };
    }
    vec![
        special!(special_airy_ai, special_airy_ai_, special_airy_ai_out, fraction, oracle::airy),
        special!(special_bessel_j0, special_bessel_j0_, special_bessel_j0_out, any, |x| {
            oracle::first_kind(0, x)
        }),
        special!(special_bessel_j1, special_bessel_j1_, special_bessel_j1_out, any, |x| {
            oracle::first_kind(1, x)
        }),
        special!(
            special_bessel_y0,
            special_bessel_y0_,
            special_bessel_y0_out,
            positive,
            oracle::y0
        ),
        special!(
            special_bessel_y1,
            special_bessel_y1_,
            special_bessel_y1_out,
            positive,
            oracle::y1
        ),
        special!(special_entr, special_entr_, special_entr_out, positive, |x| -x * x.ln()),
        special!(special_erfcx, special_erfcx_, special_erfcx_out, any, |x| (x * x).exp()
            * oracle::erfc(x)),
        special!(special_i0e, special_i0e_, special_i0e_out, nonzero, |x| oracle::modified_first(
            0, x
        ) * (-x.abs()).exp()),
        special!(special_i1, special_i1_, special_i1_out, nonzero, |x| oracle::modified_first(
            1, x
        )),
        special!(special_i1e, special_i1e_, special_i1e_out, nonzero, |x| oracle::modified_first(
            1, x
        ) * (-x.abs()).exp()),
        special!(special_log_ndtr, special_log_ndtr_, special_log_ndtr_out, any, |x| oracle::ndtr(
            x
        )
        .ln()),
        special!(
            special_modified_bessel_i0,
            special_modified_bessel_i0_,
            special_modified_bessel_i0_out,
            any,
            |x| oracle::modified_first(0, x)
        ),
        special!(
            special_modified_bessel_i1,
            special_modified_bessel_i1_,
            special_modified_bessel_i1_out,
            any,
            |x| oracle::modified_first(1, x)
        ),
        special!(
            special_modified_bessel_k0,
            special_modified_bessel_k0_,
            special_modified_bessel_k0_out,
            positive,
            |x| oracle::modified_second(0, x)
        ),
        special!(
            special_modified_bessel_k1,
            special_modified_bessel_k1_,
            special_modified_bessel_k1_out,
            positive,
            |x| oracle::modified_second(1, x)
        ),
        special!(special_ndtr, special_ndtr_, special_ndtr_out, any, oracle::ndtr),
        special!(special_ndtri, special_ndtri_, special_ndtri_out, part, oracle::ndtri),
        special!(
            special_scaled_modified_bessel_k0,
            special_scaled_modified_bessel_k0_,
            special_scaled_modified_bessel_k0_out,
            positive,
            |x| oracle::modified_second(0, x) * x.exp()
        ),
        special!(
            special_scaled_modified_bessel_k1,
            special_scaled_modified_bessel_k1_,
            special_scaled_modified_bessel_k1_out,
            positive,
            |x| oracle::modified_second(1, x) * x.exp()
        ),
        special!(
            special_spherical_bessel_j0,
            special_spherical_bessel_j0_,
            special_spherical_bessel_j0_out,
            nonzero,
            |x| x.sin() / x
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = plain().iter().flat_map(rows).collect();
    cases.extend(bitwise_not());
    cases.extend(with_numbers());
    cases.extend(frexp());
    cases
}

pub(super) fn special_cases() -> Vec<Case> {
    special_module().iter().flat_map(special_rows).collect()
}

/// PyTorch's Bessel functions are good to ten digits in float64, and its `i0e` of halves to two:
/// that one is compared with its float32.
fn special_rows(function: &Function) -> Vec<Case> {
    let of = |case: Case, belongs: fn(DType) -> bool| {
        let taken: Vec<DType> = case.dtypes.iter().copied().filter(|&d| belongs(d)).collect();
        case.dtypes(&taken)
    };
    let all = rows(function);
    if function.op == "special_i0e" {
        let wide = all.into_iter().map(|case| of(case, |d| !FLOATS[..2].contains(&d)));
        let halves = rows(function).into_iter().filter(|case| case.writes.is_empty());
        let halves = halves.map(|case| {
            let mut case = of(case, |d| FLOATS[..2].contains(&d));
            case.torch = "torch.special.i0e(a.float()).to(a.dtype)".to_string();
            case
        });
        return wide.chain(halves).collect();
    }
    if !function.op.starts_with("special_bessel") {
        return all;
    }
    let narrow = all.into_iter().map(|case| of(case, |d| d != DType::F64));
    let wide = rows(function).into_iter();
    let wide = wide.map(|case| of(case, |d| d == DType::F64).tolerance(4e6, 1.0));
    narrow.chain(wide).collect()
}

fn rows(function: &Function) -> Vec<Case> {
    let &Function { op, forms: (new, in_place, out), oracle, domain, edges, ulps, floor } =
        function;
    let Some(info) = plimsoll_tensor::ops().find(|info| info.name == op) else { return vec![] };
    let name = match op.strip_prefix("special_") {
        Some(short) => format!("torch.special.{short}"),
        None => format!("torch.{op}"),
    };
    let native: Vec<DType> = info.dtypes.iter().collect();
    // Functions of floats take integers too, where they promote.
    let taken = match oracle {
        Oracle::Float(_) => promoted(&native),
        _ => native.clone(),
    };
    let row = |input| {
        Case::new(op, format!("{name}(a)"), [input])
            .run(move |t| new(&t[0]))
            .oracle(move |x| oracle.of(&x[0]))
            .dtypes(&taken)
            .taking_only_these()
            .tolerance(ulps, floor)
            .only(&[Contiguous, Transposed, Stepped])
    };
    let gradient: &[usize] = if info.differentiable { &[0] } else { &[] };
    let mut rows = vec![row(domain(&[2, 3, 4])).gradient(gradient), row(domain(&[0, 3])).plain()];
    if edges {
        rows.push(row(special(&[4, 5])).plain());
    }
    if info.in_place {
        let written = Case::new(op, format!("a.{op}_()"), [domain(&[3, 4])])
            .writes(0, move |t| in_place(&t[0]).map(drop))
            .oracle(move |x| oracle.of(&x[0]).cast(x.dtype))
            .dtypes(&native)
            .taking_only_these()
            .tolerance(ulps, floor)
            .brief();
        let keeps = !matches!(oracle, Oracle::Truth(_));
        rows.push(written.gradient(if keeps { gradient } else { &[] }));
    }
    if info.out.exists() {
        rows.push(
            Case::new(op, format!("{name}(a, out=b)"), [domain(&[3, 4]), target(oracle, &[3, 4])])
                .writes(1, move |t| out(&t[0], &t[1]))
                .oracle(move |x| oracle.of(&x[0]))
                .dtypes(&native)
                .taking_only_these()
                .tolerance(ulps, floor)
                .brief(),
        );
    }
    rows
}

/// The dtypes that a function of floats takes: its own, and what promotes to one of them.
pub(super) fn promoted(native: &[DType]) -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_float() || native.contains(dtype)).collect()
}

fn target(oracle: Oracle, shape: &[usize]) -> super::Input {
    match oracle {
        Oracle::Truth(_) => any(shape).of(DType::Bool),
        _ => any(shape),
    }
}

fn bitwise_not() -> Vec<Case> {
    fn flipped(x: &Array) -> Array {
        let is_bool = x.dtype() == DType::Bool;
        unary::keep(x, |v| if is_bool { 1 - v } else { !v }, |v| v)
    }
    let bits: Vec<DType> = DType::ALL.into_iter().filter(|dtype| !dtype.is_float()).collect();
    vec![
        Case::new("bitwise_not", "torch.bitwise_not(a)", [any(&[3, 4])])
            .run(|t| t[0].bitwise_not())
            .oracle(|x| flipped(&x[0]))
            .dtypes(&bits),
        Case::new("bitwise_not", "a.bitwise_not_()", [any(&[3, 4])])
            .writes(0, |t| t[0].bitwise_not_().map(drop))
            .oracle(|x| flipped(&x[0]))
            .dtypes(&bits)
            .brief(),
        Case::new("bitwise_not", "torch.bitwise_not(a, out=b)", [any(&[3, 4]), any(&[3, 4])])
            .writes(1, |t| t[0].bitwise_not_out(&t[1]))
            .oracle(|x| flipped(&x[0]))
            .dtypes(&bits)
            .brief(),
    ]
}

/// The three forms of a function with host numbers.
#[expect(clippy::too_many_arguments, reason = "a row of a table")]
fn numbered(
    op: &'static str,
    torch: [&str; 3],
    dtypes: &[DType],
    domain: fn(&[usize]) -> super::Input,
    new: New,
    in_place: InPlace,
    out: Out,
    oracle: fn(f64) -> f64,
) -> Vec<Case> {
    let of = move |x: &Array| unary::keep(x, |v| v, oracle);
    vec![
        Case::new(op, torch[0], [domain(&[2, 3, 4])])
            .run(move |t| new(&t[0]))
            .oracle(move |x| of(&x[0]))
            .dtypes(dtypes)
            .taking_only_these()
            .tolerance(64.0, 1.0)
            .gradient(&[0]),
        Case::new(op, torch[1], [domain(&[3, 4])])
            .writes(0, move |t| in_place(&t[0]).map(drop))
            .oracle(move |x| of(&x[0]))
            .dtypes(dtypes)
            .taking_only_these()
            .tolerance(64.0, 1.0)
            .brief(),
        Case::new(op, torch[2], [domain(&[3, 4]), any(&[3, 4])])
            .writes(1, move |t| out(&t[0], &t[1]))
            .oracle(move |x| of(&x[0]))
            .dtypes(dtypes)
            .taking_only_these()
            .tolerance(64.0, 1.0)
            .brief(),
    ]
}

fn with_numbers() -> Vec<Case> {
    let mut rows = numbered(
        "logit",
        ["torch.logit(a, 0.25)", "a.logit_(0.25)", "torch.logit(a, 0.25, out=b)"],
        &FLOATS,
        part,
        |x| x.logit_with(LogitOptions::new().eps(0.25)),
        |x| x.logit_with_(LogitOptions::new().eps(0.25)),
        |x, out| x.logit_with_out(LogitOptions::new().eps(0.25), out),
        |v| {
            let v = v.clamp(0.25, 0.75);
            (v / (1.0 - v)).ln()
        },
    );
    rows.extend(numbered(
        "nan_to_num",
        ["torch.nan_to_num(a, 1.5)", "a.nan_to_num_(1.5)", "torch.nan_to_num(a, 1.5, out=b)"],
        &DType::ALL,
        any,
        |x| x.nan_to_num_with(NanToNumOptions::new().nan(1.5)),
        |x| x.nan_to_num_with_(NanToNumOptions::new().nan(1.5)),
        |x, out| x.nan_to_num_with_out(NanToNumOptions::new().nan(1.5), out),
        |v| if v.is_nan() { 1.5 } else { v },
    ));
    rows.push(
        Case::new("nan_to_num", "torch.nan_to_num(a, 2.0, 3.0, -3.0)", [special(&[17])])
            .run(|t| t[0].nan_to_num_with(NanToNumOptions::new().nan(2.0).posinf(3.0).neginf(-3.0)))
            .oracle(|x| unary::keep(&x[0], |v| v, oracle::replaced))
            .plain(),
    );
    rows.extend(numbered(
        "polygamma",
        ["torch.polygamma(2, a)", "a.polygamma_(2)", "torch.polygamma(2, a, out=b)"],
        &FLOATS,
        positive,
        |x| x.polygamma(2),
        |x| x.polygamma_(2),
        |x, out| x.polygamma_out(2, out),
        |x| -2.0 * oracle::zeta(3.0, x),
    ));
    rows.push(
        Case::new("round", "torch.round(a, decimals=1)", [any(&[3, 4])])
            .run(|t| t[0].round_with(RoundOptions::new().decimals(1)))
            .oracle(|x| unary::keep(&x[0], |v| v, |v| (v * 10.0).round_ties_even() / 10.0))
            .dtypes(&[DType::F32, DType::F64])
            .taking_only_these()
            .brief(),
    );
    rows
}

fn frexp() -> Vec<Case> {
    fn parts(x: &Array) -> (Array, Array) {
        let part = |v: f64| {
            let exponent = if v == 0.0 { 0.0 } else { v.abs().log2().floor() + 1.0 };
            (v / exponent.exp2(), exponent)
        };
        let fraction = Array::build(x.dtype(), x.shape(), |i| part(x.at(i).to_f64()).0);
        (fraction, Array::build(DType::I32, x.shape(), |i| part(x.at(i).to_f64()).1))
    }
    vec![
        Case::new("frexp", "torch.frexp(a)", [nonzero(&[3, 4])])
            .run(|t| t[0].frexp())
            .oracle(|x| parts(&x[0]))
            .dtypes(&FLOATS)
            .brief(),
        Case::new("frexp", "torch.frexp(a)[0]", [nonzero(&[3, 4])])
            .run(|t| t[0].frexp().map(|both| both.0))
            .oracle(|x| parts(&x[0]).0)
            .dtypes(&FLOATS)
            .plain()
            .gradient(&[0]),
        Case::new(
            "frexp",
            "torch.frexp(a, out=(b, c))",
            [nonzero(&[3, 4]), any(&[3, 4]), any(&[3, 4]).of(DType::I32)],
        )
        .writes_all(&[1, 2], |t| t[0].frexp_out(&t[1], &t[2]))
        .oracle(|x| parts(&x[0]))
        .dtypes(&FLOATS)
        .brief(),
    ]
}
