//! The long tail of functions of two elements: a line each with its forms, its oracle and the
//! values that it is smooth on. Arithmetic is in `binary.rs`.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::Tensor;

use super::input::{any, distinct, fraction, nonzero, part, positive};
use super::{Case, FLOATS};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::{Array, binary, functions as oracle};

type New = fn(&Tensor, &Tensor) -> Result<Tensor>;
type InPlace = fn(&Tensor, &Tensor) -> Result<()>;
type Out = fn(&Tensor, &Tensor, &Tensor) -> Result<()>;

#[derive(Clone, Copy)]
enum Oracle {
    /// A function of floats; integers become float32.
    Float(fn(f64, f64) -> f64),
    /// The dtype stays: of integers, and of floats.
    Keep(fn(i64, i64) -> i64, fn(f64, f64) -> f64),
    /// Of whether both are nonzero.
    Truth(fn(bool, bool) -> bool),
}

impl Oracle {
    fn of(self, a: &Array, b: &Array) -> Array {
        match self {
            Oracle::Float(f) => binary::float(a, b, f),
            Oracle::Keep(int, float) => binary::arithmetic(a, b, int, float),
            Oracle::Truth(f) => binary::truths(a, b, f),
        }
    }
}

struct Pair {
    op: &'static str,
    forms: (New, InPlace, Out),
    oracle: Oracle,
    domains: [fn(&[usize]) -> super::Input; 2],
    /// The operands that have a derivative.
    slopes: &'static [usize],
    ulps: f64,
    floor: f64,
}

impl Pair {
    fn on(self, domains: [fn(&[usize]) -> super::Input; 2], slopes: &'static [usize]) -> Pair {
        Pair { domains, slopes, ..self }
    }

    fn within(self, ulps: f64, floor: f64) -> Pair {
        Pair { ulps, floor, ..self }
    }
}

macro_rules! pair {
    ($name:ident, $in_place:ident, $into:ident, $oracle:expr) => {
        Pair {
            op: stringify!($name),
            forms: (
                |a, b| a.$name(b),
                |a, b| a.$in_place(b).map(drop),
                |a, b, out| a.$into(b, out),
            ),
            oracle: $oracle,
            domains: [any, any],
            slopes: &[],
            ulps: 4.0,
            floor: 0.0,
        }
    };
}

fn plain() -> Vec<Pair> {
    use Oracle::{Float, Keep, Truth};
    vec![
        pair!(atan2, atan2_, atan2_out, Float(f64::atan2)).on([nonzero, nonzero], &[0, 1]),
        pair!(copysign, copysign_, copysign_out, Float(f64::copysign)).on([nonzero, nonzero], &[0]),
        pair!(fmax, fmax_, fmax_out, Keep(i64::max, f64::max)).on([distinct, any], &[0, 1]),
        pair!(fmin, fmin_, fmin_out, Keep(i64::min, f64::min)).on([distinct, any], &[0, 1]),
        pair!(fmod, fmod_, fmod_out, Keep(i64::wrapping_rem, |a, b| a % b))
            .on([any, nonzero], &[0]),
        pair!(remainder, remainder_, remainder_out, Keep(binary::whole_modulo, binary::modulo))
            .on([any, nonzero], &[0])
            .within(4.0, 3.0),
        pair!(
            heaviside,
            heaviside_,
            heaviside_out,
            Keep(
                |a, b| if a == 0 { b } else { i64::from(a > 0) },
                |a, b| if a == 0.0 { b } else { f64::from(u8::from(a > 0.0)) }
            )
        ),
        pair!(hypot, hypot_, hypot_out, Keep(|a, _| a, f64::hypot)).on([nonzero, nonzero], &[0, 1]),
        pair!(
            logaddexp,
            logaddexp_,
            logaddexp_out,
            Keep(|a, _| a, |a, b| (a.exp() + b.exp()).ln())
        )
        .on([any, any], &[0, 1])
        .within(16.0, 1.0),
        pair!(
            logaddexp2,
            logaddexp2_,
            logaddexp2_out,
            Keep(|a, _| a, |a, b| (a.exp2() + b.exp2()).log2())
        )
        .on([any, any], &[0, 1])
        .within(16.0, 1.0),
        pair!(nextafter, nextafter_, nextafter_out, Keep(|a, _| a, |a, _| a)).within(4.0, 0.0),
        pair!(xlogy, xlogy_, xlogy_out, Float(|a, b| a * b.ln()))
            .on([nonzero, positive], &[0, 1])
            .within(8.0, 1.0),
        pair!(igamma, igamma_, igamma_out, Keep(|a, _| a, oracle::igamma))
            .on([positive, positive], &[1])
            .within(256.0, 1.0),
        pair!(igammac, igammac_, igammac_out, Keep(|a, _| a, |a, x| 1.0 - oracle::igamma(a, x)))
            .on([positive, positive], &[1])
            .within(256.0, 1.0),
        pair!(logical_and, logical_and_, logical_and_out, Truth(|a, b| a && b)),
        pair!(logical_or, logical_or_, logical_or_out, Truth(|a, b| a || b)),
        pair!(logical_xor, logical_xor_, logical_xor_out, Truth(|a, b| a != b)),
        pair!(bitwise_and, bitwise_and_, bitwise_and_out, Keep(|a, b| a & b, |a, _| a)),
        pair!(bitwise_or, bitwise_or_, bitwise_or_out, Keep(|a, b| a | b, |a, _| a)),
        pair!(bitwise_xor, bitwise_xor_, bitwise_xor_out, Keep(|a, b| a ^ b, |a, _| a)),
        pair!(
            bitwise_left_shift,
            bitwise_left_shift_,
            bitwise_left_shift_out,
            Keep(|a, b| a << b, |a, _| a)
        )
        .on([any, exponent], &[]),
        pair!(
            bitwise_right_shift,
            bitwise_right_shift_,
            bitwise_right_shift_out,
            Keep(|a, b| a >> b, |a, _| a)
        )
        .on([any, exponent], &[]),
        pair!(gcd, gcd_, gcd_out, Keep(binary::gcd, |a, _| a)),
        pair!(
            lcm,
            lcm_,
            lcm_out,
            Keep(
                |a, b| if a == 0 || b == 0 { 0 } else { (a * b).abs() / binary::gcd(a, b) },
                |a, _| a
            )
        ),
    ]
}

/// How far bits are moved: within every integer's width, also of those whose values are any.
fn exponent(shape: &[usize]) -> super::Input {
    super::input::shifts(shape)
}

fn special() -> Vec<Pair> {
    use Oracle::Float;
    vec![
        pair!(special_xlog1py, special_xlog1py_, special_xlog1py_out, Float(|a, b| a * b.ln_1p()))
            .on([nonzero, part], &[0, 1])
            .within(8.0, 1.0),
        pair!(special_zeta, special_zeta_, special_zeta_out, Float(oracle::zeta))
            .on([super::input::beyond_one, positive], &[1])
            .within(256.0, 1.0),
    ]
}

/// A polynomial and its value at x for degree 3.
struct Polynomial(
    &'static str,
    fn(&Tensor, i64) -> Result<Tensor>,
    fn(&Tensor, &Tensor) -> Result<()>,
    fn(f64) -> f64,
);

macro_rules! polynomial {
    ($name:ident, $into:ident, $oracle:expr) => {
        Polynomial(stringify!($name), |x, n| x.$name(n), |x, out| x.$into(3, out), $oracle)
    };
}

fn polynomials() -> Vec<Polynomial> {
    fn shifted(x: f64) -> f64 {
        2.0 * x - 1.0
    }
    fn t(x: f64) -> f64 {
        4.0 * x.powi(3) - 3.0 * x
    }
    fn u(x: f64) -> f64 {
        8.0 * x.powi(3) - 4.0 * x
    }
    fn v(x: f64) -> f64 {
        8.0 * x.powi(3) - 4.0 * x.powi(2) - 4.0 * x + 1.0
    }
    fn w(x: f64) -> f64 {
        8.0 * x.powi(3) + 4.0 * x.powi(2) - 4.0 * x - 1.0
    }
    vec![
        polynomial!(special_chebyshev_polynomial_t, special_chebyshev_polynomial_t_out, t),
        polynomial!(special_chebyshev_polynomial_u, special_chebyshev_polynomial_u_out, u),
        polynomial!(special_chebyshev_polynomial_v, special_chebyshev_polynomial_v_out, v),
        polynomial!(special_chebyshev_polynomial_w, special_chebyshev_polynomial_w_out, w),
        polynomial!(
            special_shifted_chebyshev_polynomial_t,
            special_shifted_chebyshev_polynomial_t_out,
            |x| t(shifted(x))
        ),
        polynomial!(
            special_shifted_chebyshev_polynomial_u,
            special_shifted_chebyshev_polynomial_u_out,
            |x| u(shifted(x))
        ),
        polynomial!(
            special_shifted_chebyshev_polynomial_v,
            special_shifted_chebyshev_polynomial_v_out,
            |x| v(shifted(x))
        ),
        polynomial!(
            special_shifted_chebyshev_polynomial_w,
            special_shifted_chebyshev_polynomial_w_out,
            |x| w(shifted(x))
        ),
        polynomial!(special_hermite_polynomial_h, special_hermite_polynomial_h_out, |x| {
            oracle::hermite_h(x, 3)
        }),
        polynomial!(special_hermite_polynomial_he, special_hermite_polynomial_he_out, |x| {
            oracle::hermite_he(x, 3)
        }),
        polynomial!(special_laguerre_polynomial_l, special_laguerre_polynomial_l_out, |x| {
            oracle::laguerre(x, 3)
        }),
        polynomial!(special_legendre_polynomial_p, special_legendre_polynomial_p_out, |x| {
            oracle::legendre(x, 3)
        }),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    plain().iter().flat_map(rows).collect()
}

pub(super) fn special_cases() -> Vec<Case> {
    let polynomials = polynomials();
    special().iter().flat_map(rows).chain(polynomials.iter().flat_map(polynomial_rows)).collect()
}

fn rows(pair: &Pair) -> Vec<Case> {
    let &Pair {
        op,
        forms: (new, in_place, out),
        oracle,
        domains: [first, second],
        slopes,
        ulps,
        floor,
    } = pair;
    let Some(info) = plimsoll_tensor::ops().find(|info| info.name == op) else { return vec![] };
    // The oracle of a step to the next number is the dtype's own; PyTorch's golden results are.
    if op == "nextafter" {
        return nextafter();
    }
    let name = match op.strip_prefix("special_") {
        Some(short) => format!("torch.special.{short}"),
        None => format!("torch.{op}"),
    };
    let native: Vec<DType> = info.dtypes.iter().collect();
    let taken = if matches!(oracle, Oracle::Float(_)) {
        super::functions::promoted(&native)
    } else {
        native.clone()
    };
    let row = |torch: String, inputs: [super::Input; 2]| {
        Case::new(op, torch, inputs)
            .run(move |t| new(&t[0], &t[1]))
            .oracle(move |x| oracle.of(&x[0], &x[1]))
            .dtypes(&taken)
            .taking_only_these()
            .tolerance(ulps, floor)
    };
    let mut rows = vec![
        row(format!("{name}(a, b)"), [first(&[2, 3, 4]), second(&[2, 3, 4])])
            .only(&[Contiguous, Transposed, Stepped])
            .gradient(slopes),
        row(format!("{name}(a, b)"), [first(&[3, 1]), second(&[4])]).plain().gradient(slopes),
        row(format!("{name}(a, b)"), [first(&[0, 3]), second(&[3])]).plain(),
    ];
    if info.in_place {
        rows.push(
            Case::new(op, format!("a.{op}_(b)"), [first(&[3, 4]), second(&[4])])
                .writes(0, move |t| in_place(&t[0], &t[1]))
                .oracle(move |x| oracle.of(&x[0], &x[1]).cast(x.dtype))
                .dtypes(&native)
                .taking_only_these()
                .tolerance(ulps, floor)
                .brief(),
        );
    }
    let target = if matches!(oracle, Oracle::Truth(_)) {
        any(&[3, 4]).of(DType::Bool)
    } else {
        any(&[3, 4])
    };
    rows.push(
        Case::new(op, format!("{name}(a, b, out=c)"), [first(&[3, 4]), second(&[4]), target])
            .writes(2, move |t| out(&t[0], &t[1], &t[2]))
            .oracle(move |x| oracle.of(&x[0], &x[1]))
            .dtypes(&native)
            .taking_only_these()
            .tolerance(ulps, floor)
            .brief(),
    );
    rows
}

fn nextafter() -> Vec<Case> {
    fn next(a: &Array, b: &Array) -> Array {
        let dtype = a.dtype();
        binary::arithmetic(a, b, |a, _| a, move |a, b| oracle::next_of(dtype, a, b))
    }
    let two = || [nonzero(&[3, 4]), any(&[4])];
    vec![
        Case::new("nextafter", "torch.nextafter(a, b)", two())
            .run(|t| t[0].nextafter(&t[1]))
            .oracle(|x| next(&x[0], &x[1]))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(0.0, 0.0)
            .brief(),
        Case::new("nextafter", "a.nextafter_(b)", two())
            .writes(0, |t| t[0].nextafter_(&t[1]).map(drop))
            .oracle(|x| next(&x[0], &x[1]))
            .dtypes(&FLOATS)
            .taking_only_these()
            .plain(),
        Case::new(
            "nextafter",
            "torch.nextafter(a, b, out=c)",
            [nonzero(&[3, 4]), any(&[4]), any(&[3, 4])],
        )
        .writes(2, |t| t[0].nextafter_out(&t[1], &t[2]))
        .oracle(|x| next(&x[0], &x[1]))
        .dtypes(&FLOATS)
        .taking_only_these()
        .plain(),
    ]
}

fn polynomial_rows(polynomial: &Polynomial) -> Vec<Case> {
    let &Polynomial(op, new, out, oracle) = polynomial;
    let short = op.trim_start_matches("special_");
    // PyTorch has them for float32 and float64.
    let wide = [DType::F32, DType::F64];
    let of = move |x: &Array| crate::oracle::unary::float(x, oracle);
    vec![
        Case::new(op, format!("torch.special.{short}(a, 3)"), [fraction(&[2, 3, 4])])
            .run(move |t| new(&t[0], 3))
            .oracle(move |x| of(&x[0]))
            .dtypes(&wide)
            .taking_only_these()
            .tolerance(16.0, 32.0)
            .brief(),
        Case::new(
            op,
            format!("torch.special.{short}(a, 3, out=b)"),
            [fraction(&[3, 4]), any(&[3, 4])],
        )
        .writes(1, move |t| out(&t[0], &t[1]))
        .oracle(move |x| of(&x[0]))
        .dtypes(&wide)
        .taking_only_these()
        .tolerance(16.0, 32.0)
        .brief(),
    ]
}
