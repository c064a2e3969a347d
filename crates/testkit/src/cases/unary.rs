//! Functions of one element.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{Approximate, GeluOptions, Tensor};

use super::input::{any, edges, nonzero, positive, special};
use super::{Case, FLOATS, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, unary};

type New = fn(&Tensor) -> Result<Tensor>;
type InPlace = fn(&Tensor) -> Result<&Tensor>;
type Out = fn(&Tensor, &Tensor) -> Result<()>;

/// What an operation should give.
#[derive(Clone, Copy)]
enum Oracle {
    /// A function of floats; integers become float32.
    Float(fn(f64) -> f64),
    /// A function that keeps the dtype.
    Array(fn(&Array) -> Array),
}

impl Oracle {
    fn of(self, x: &Array) -> Array {
        match self {
            Oracle::Float(function) => unary::float(x, function),
            Oracle::Array(function) => function(x),
        }
    }
}

/// A unary operation: its three forms in Plimsoll, and the oracle.
struct Unary {
    op: &'static str,
    forms: (New, InPlace, Out),
    oracle: Oracle,
    /// In PyTorch, with `{}` for the input: plain, in-place, `out=b`.
    torch: [String; 3],
    dtypes: &'static [DType],
    /// The values that it is smooth and defined on.
    domain: fn(&[usize]) -> super::Input,
    /// The values at its edges.
    edges: fn(&[usize]) -> super::Input,
    floor: f64,
}

impl Unary {
    /// A function that PyTorch has in all three forms under one name.
    fn new(op: &'static str, forms: (New, InPlace, Out), oracle: Oracle) -> Unary {
        let torch =
            [format!("torch.{op}(a)"), format!("a.{op}_()"), format!("torch.{op}(a, out=b)")];
        let dtypes = &DType::ALL;
        Unary { op, forms, oracle, torch, dtypes, domain: any, edges: special, floor: 0.0 }
    }

    /// Smooth and defined on the values of `domain` alone.
    fn on(self, domain: fn(&[usize]) -> super::Input) -> Unary {
        Unary { domain, ..self }
    }
}

/// A function of floats.
fn float(op: &'static str, forms: (New, InPlace, Out), function: fn(f64) -> f64) -> Unary {
    Unary::new(op, forms, Oracle::Float(function))
}

/// A function that keeps the dtype, and which dtypes it takes.
fn number(
    op: &'static str,
    forms: (New, InPlace, Out),
    dtypes: &'static [DType],
    function: fn(&Array) -> Array,
) -> Unary {
    Unary { dtypes, ..Unary::new(op, forms, Oracle::Array(function)) }
}

/// A function of floats that PyTorch keeps under `torch.nn`, with more arguments in `rest`.
fn native(
    op: &'static str,
    rest: &str,
    forms: (New, InPlace, Out),
    function: fn(f64) -> f64,
) -> Unary {
    let call = format!("torch._C._nn.{op}");
    let torch = [
        format!("{call}(a{rest})"),
        format!("{call}_(a{rest})"),
        format!("{call}(a{rest}, out=b)"),
    ];
    // PyTorch's vectorised gelu gives NaN at infinity where its scalar one gives infinity.
    Unary { torch, dtypes: &FLOATS, edges, floor: 1.0, ..float(op, forms, function) }
}

/// Every unary operation.
fn operations() -> Vec<Unary> {
    let tanh_gelu: (New, InPlace, Out) =
        (|x| x.gelu_with(tanh()), |x| x.gelu_with_(tanh()), |x, out| x.gelu_with_out(tanh(), out));
    vec![
        number("abs", (Tensor::abs, Tensor::abs_, Tensor::abs_out), &NUMBERS, unary::abs)
            .on(nonzero),
        float("erf", (Tensor::erf, Tensor::erf_, Tensor::erf_out), unary::erf),
        float("exp", (Tensor::exp, Tensor::exp_, Tensor::exp_out), f64::exp),
        native("gelu", "", (Tensor::gelu, Tensor::gelu_, Tensor::gelu_out), unary::gelu),
        native("gelu", ", approximate='tanh'", tanh_gelu, unary::gelu_tanh),
        float("log", (Tensor::log, Tensor::log_, Tensor::log_out), f64::ln).on(positive),
        float("log1p", (Tensor::log1p, Tensor::log1p_, Tensor::log1p_out), f64::ln_1p).on(positive),
        number("neg", (Tensor::neg, Tensor::neg_, Tensor::neg_out), &NUMBERS, unary::neg),
        float(
            "reciprocal",
            (Tensor::reciprocal, Tensor::reciprocal_, Tensor::reciprocal_out),
            f64::recip,
        )
        .on(nonzero),
        Unary {
            torch: ["torch.relu(a)", "a.relu_()", "torch.clamp_min(a, 0, out=b)"].map(String::from),
            ..number("relu", (Tensor::relu, Tensor::relu_, Tensor::relu_out), &NUMBERS, unary::relu)
        }
        .on(nonzero),
        float("rsqrt", (Tensor::rsqrt, Tensor::rsqrt_, Tensor::rsqrt_out), |v| 1.0 / v.sqrt())
            .on(positive),
        float("sigmoid", (Tensor::sigmoid, Tensor::sigmoid_, Tensor::sigmoid_out), unary::sigmoid),
        number("sign", (Tensor::sign, Tensor::sign_, Tensor::sign_out), &DType::ALL, unary::sign)
            .on(nonzero),
        float("sqrt", (Tensor::sqrt, Tensor::sqrt_, Tensor::sqrt_out), f64::sqrt).on(positive),
        float("tanh", (Tensor::tanh, Tensor::tanh_, Tensor::tanh_out), f64::tanh),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    operations().iter().flat_map(rows).collect()
}

fn rows(unary: &Unary) -> Vec<Case> {
    let &Unary { op, forms: (new, in_place, out), oracle, ref torch, dtypes, domain, edges, floor } =
        unary;
    let row = |input| {
        Case::new(op, &torch[0], [input])
            .run(move |t| new(&t[0]))
            .oracle(move |x| oracle.of(&x[0]))
            .dtypes(dtypes)
            .tolerance(4.0, floor)
    };
    // A result of another dtype than the input's does not fit where the written forms put it.
    let native: Vec<DType> = plimsoll_tensor::ops()
        .filter(|info| info.name == op)
        .flat_map(|info| info.dtypes.iter())
        .collect();
    let written = |case: Case| case.dtypes(&native).tolerance(4.0, floor);
    let mut rows = vec![
        row(domain(&[2, 3, 4])).gradient(&[0]),
        row(edges(&[4, 5])).only(&[Contiguous, Stepped]),
        row(domain(&[0, 3])).only(&[Contiguous, Offset]),
        row(domain(&[])).only(&[Contiguous, Offset]).gradient(&[0]),
        row(domain(&[67])).plain(),
    ];
    rows.push(
        written(Case::new(op, &torch[1], [domain(&[2, 3, 4])]))
            .writes(0, move |t| in_place(&t[0]).map(|_| ()))
            .oracle(move |x| oracle.of(&x[0]))
            .gradient(&[0]),
    );
    rows.push(
        written(Case::new(op, &torch[2], [domain(&[3, 4]), any(&[3, 4])]))
            .writes(1, move |t| out(&t[0], &t[1]))
            .oracle(move |x| oracle.of(&x[0]))
            .only(&[Contiguous, Transposed, Stepped]),
    );
    rows
}

fn tanh() -> GeluOptions {
    GeluOptions::new().approximate(Approximate::Tanh)
}
