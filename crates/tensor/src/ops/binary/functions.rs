//! The rarer functions of two operands, an entry each as in `unary/functions.rs`: documentation,
//! forms, signatures, kernel, derivatives. Sums, products and their like are in `mod.rs`.

use plimsoll_core::Result;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{arithmetic as cpu, call, special};

use super::entry::binary;
use super::{BOTH, NOTHING, Reads, Sides, info};
use crate::Tensor;
use crate::operation::{DTypes, OnCuda, OpInfo, Out, Promotion};
use crate::promotion::Other;

/// A function of floats; integers become float32.
const FLOAT: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::ARITHMETIC),
    dtypes: DTypes::FLOATS,
    promotion: Promotion::Float,
    ..info("", &[])
};

/// A function of numbers.
const NUMBER: OpInfo = OpInfo { dtypes: DTypes::NUMBERS, promotion: Promotion::Common, ..FLOAT };

/// As [`NUMBER`], and of bools.
const STEP: OpInfo =
    OpInfo { dtypes: DTypes::ALL, differentiable: false, out: Out::Exact, ..NUMBER };

/// Of every dtype, without a form in place.
const NO_FORM_IN_PLACE: OpInfo = OpInfo { dtypes: DTypes::ALL, in_place: false, ..NUMBER };

/// A function of floats alone.
const NUMBER_FLOAT: OpInfo = OpInfo { dtypes: DTypes::FLOATS, ..NUMBER };

/// As [`NUMBER_FLOAT`], without a form in place.
const FLOAT_ONLY: OpInfo = OpInfo { in_place: false, ..NUMBER_FLOAT };

/// As [`NUMBER_FLOAT`], with a derivative by the second operand alone.
const SECOND_ONLY: OpInfo =
    OpInfo { cuda: OnCuda::Kernels(&source_files::SPECIAL), ..NUMBER_FLOAT };

const A_AND_OUT: Reads = Reads { a: true, b: false, out: true };
const B_AND_OUT: Reads = Reads { a: false, b: true, out: true };

/// An operand's square, as one of `like`'s kind.
fn square(x: Other<'_>, like: &Tensor) -> Result<Tensor> {
    let x = self::like(x, like)?;
    x.mul(&x)
}

/// The reciprocal; 0 of 0, so that nothing comes back to a point that has no angle.
fn inverse_unless_zero(x: &Tensor) -> Result<Tensor> {
    Tensor::where_(&x.eq(0.0)?, 0.0, &x.reciprocal()?)
}

/// An operand as a tensor; a number in the dtype of `like`, beside it.
pub(super) fn like(x: Other<'_>, like: &Tensor) -> Result<Tensor> {
    match x {
        Other::Tensor(x) => Ok(x.clone()),
        Other::Scalar(number) => Tensor::full(&[], number, (like.dtype(), like.device())),
    }
}

/// The gradient of the larger operand (or the smaller), which a NaN is not; half of it where both
/// are equal.
fn chosen_number(s: &Sides<'_>, by_size: bool, is_first: bool) -> Result<Tensor> {
    let (a, b) = match (s.a()?, s.b()?) {
        (Other::Tensor(a), b) => (a.clone(), like(b, a)?),
        (a, Other::Tensor(b)) => (like(a, b)?, b.clone()),
        _ => return Err(s.missing("an operand")),
    };
    let first = if by_size { a.gt(&b)? } else { a.lt(&b)? }.logical_or(&b.isnan()?)?;
    let chosen = if is_first { first } else { first.logical_not()? };
    let alone = Tensor::where_(&chosen, s.grad, 0.0)?;
    Tensor::where_(&a.eq(&b)?, &s.grad.mul(0.5)?, &alone)
}

/// How far `x` is beyond `y`.
fn beyond(x: Other<'_>, y: &Tensor) -> Result<Tensor> {
    match x {
        Other::Tensor(x) => x.sub(y),
        Other::Scalar(number) => y.rsub(number),
    }
}

/// The quotient of both operands, rounded toward zero or down.
fn quotient(s: &Sides<'_>, toward_zero: bool) -> Result<Tensor> {
    let divisor = s.tensor_b()?;
    let quotient = like(s.a()?, divisor)?.div(divisor)?;
    if toward_zero { quotient.trunc() } else { quotient.floor() }
}

/// exp(-x) x^(a - 1) / gamma(a).
fn gamma_density(s: &Sides<'_>) -> Result<Tensor> {
    let x = s.tensor_b()?;
    let a = like(s.a()?, x)?;
    a.sub(1.0)?.mul(&x.log()?)?.sub(x)?.sub(&a.lgamma()?)?.exp()
}

binary! {
    /// The angle of each point whose ordinate is this tensor and whose abscissa the other.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.atan2(0.0)?.to_vec::<f32>()?, [0.0, std::f32::consts::FRAC_PI_2]);
    /// # Ok::<(), Error>(())
    /// ```
    atan2, atan2_, atan2_out => ATAN2: FLOAT, [
        "atan2(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| call::two(launch, second, f64::atan2),
        derivatives: [
            |s| {
                let (a, b) = (s.tensor_a()?, s.b()?);
                s.grad.mul(&inverse_unless_zero(&a.mul(a)?.add(&square(b, a)?)?)?.mul(b)?)
            },
            |s| {
                let (a, b) = (s.a()?, s.tensor_b()?);
                s.grad.mul(&inverse_unless_zero(&b.mul(b)?.add(&square(a, b)?)?)?.mul(a)?.neg()?)
            },
        ],
    }

    /// Each element with the sign of the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, -2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.copysign(-1.0)?.to_vec::<f32>()?, [-1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    copysign, copysign_, copysign_out => COPYSIGN: FLOAT, [
        "copysign(Tensor self, Tensor|Scalar other) -> Tensor",
    ] {
        reads: [A_AND_OUT, NOTHING],
        cpu: |launch, second, _| cpu::copysign(launch, second),
        derivatives: [
            |s| {
                let (a, out) = (s.tensor_a()?, s.out()?);
                let sign = out.div(a)?.sign()?;
                s.grad.mul(&Tensor::where_(&a.eq(0.0)?, 0.0, &sign)?)
            },
            |s| s.grad.zeros_like(),
        ],
    }

    /// The larger of both operands, and of a NaN and a number the number.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN], &[2], Device::cpu())?;
    /// assert_eq!(x.fmax(2.0)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    fmax, fmax_, fmax_out => FMAX: NO_FORM_IN_PLACE, [
        "fmax(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| cpu::fmax(launch, second),
        derivatives: [
            |s| chosen_number(s, true, true),
            |s| chosen_number(s, true, false),
        ],
    }

    /// The smaller of both operands, and of a NaN and a number the number.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN], &[2], Device::cpu())?;
    /// assert_eq!(x.fmin(2.0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    fmin, fmin_, fmin_out => FMIN: NO_FORM_IN_PLACE, [
        "fmin(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| cpu::fmin(launch, second),
        derivatives: [
            |s| chosen_number(s, false, true),
            |s| chosen_number(s, false, false),
        ],
    }

    /// What is left of each element after whole divisors, with its own sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[7.0f32, -7.0], &[2], Device::cpu())?;
    /// assert_eq!(x.fmod(3.0)?.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    fmod, fmod_, fmod_out => FMOD: NUMBER, [
        "fmod(Tensor self, Tensor|Scalar other) -> Tensor",
    ] {
        reads: [NOTHING, BOTH],
        cpu: |launch, second, _| cpu::fmod(launch, second),
        derivatives: [
            |s| Ok(s.grad.clone()),
            |s| s.grad.neg()?.mul(&quotient(s, true)?),
        ],
    }

    /// What is left of each element after whole divisors, with the divisor's sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[7.0f32, -7.0], &[2], Device::cpu())?;
    /// assert_eq!(x.remainder(3.0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    remainder, remainder_, remainder_out, rremainder => REMAINDER: NUMBER, [
        "remainder(Tensor self, Tensor|Scalar other) -> Tensor",
        "remainder(Scalar self, Tensor other) -> Tensor",
    ] {
        reads: [NOTHING, BOTH],
        cpu: |launch, second, _| cpu::remainder(launch, second),
        derivatives: [
            |s| Ok(s.grad.clone()),
            |s| s.grad.neg()?.mul(&quotient(s, false)?),
        ],
    }

    /// 0 for elements below 0, 1 above, and the other operand at 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.heaviside(0.5)?.to_vec::<f32>()?, [0.0, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    heaviside, heaviside_, heaviside_out => HEAVISIDE: STEP, [
        "heaviside(Tensor self, Tensor values) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::heaviside(launch, second),
    }

    /// The length of the hypotenuse over both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.hypot(4.0)?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    hypot, hypot_, hypot_out => HYPOT: NUMBER_FLOAT, [
        "hypot(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [A_AND_OUT, B_AND_OUT],
        cpu: |launch, second, _| call::two(launch, second, f64::hypot),
        derivatives: [
            |s| s.grad.mul(&s.tensor_a()?.div(s.out()?)?),
            |s| s.grad.mul(&s.tensor_b()?.div(s.out()?)?),
        ],
    }

    /// The logarithm of the sum of both operands' exponentials.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.logaddexp(f64::NEG_INFINITY)?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    logaddexp, logaddexp_, logaddexp_out => LOGADDEXP: FLOAT_ONLY, [
        "logaddexp(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::logaddexp),
        derivatives: [
            |s| s.grad.div(&beyond(s.b()?, s.tensor_a()?)?.exp()?.add(1.0)?),
            |s| s.grad.div(&beyond(s.a()?, s.tensor_b()?)?.exp()?.add(1.0)?),
        ],
    }

    /// The binary logarithm of the sum of 2 to the power of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.logaddexp2(0.0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    logaddexp2, logaddexp2_, logaddexp2_out => LOGADDEXP2: FLOAT_ONLY, [
        "logaddexp2(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::logaddexp2),
        derivatives: [
            |s| s.grad.div(&beyond(s.b()?, s.tensor_a()?)?.exp2()?.add(1.0)?),
            |s| s.grad.div(&beyond(s.a()?, s.tensor_b()?)?.exp2()?.add(1.0)?),
        ],
    }

    /// The next number of the dtype after each element, toward the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.nextafter(2.0)?.to_vec::<f32>()?, [1.0 + f32::EPSILON]);
    /// # Ok::<(), Error>(())
    /// ```
    nextafter, nextafter_, nextafter_out => NEXTAFTER: NUMBER_FLOAT, [
        "nextafter(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, NOTHING],
        cpu: |launch, second, _| cpu::nextafter(launch, second),
        derivatives: [
            // At the other operand it stands still.
            |s| Tensor::where_(&beyond(s.b()?, s.tensor_a()?)?.eq(0.0)?, 0.0, s.grad),
            |s| s.grad.zeros_like(),
        ],
    }

    /// Each element times the logarithm of the other operand, and 0 where it is 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.xlogy(1.0)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    xlogy, xlogy_, xlogy_out, rxlogy => XLOGY: FLOAT, [
        "xlogy(Tensor self, Tensor|Scalar other) -> Tensor",
        "xlogy(Scalar self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::xlogy),
        derivatives: [
            |s| {
                let (x, y) = (s.tensor_a()?, s.b()?);
                let (logarithm, dead) = (like(y, x)?.log()?, like(y, x)?.le(0.0)?);
                s.grad.mul(&Tensor::where_(&x.eq(0.0)?.logical_and(&dead)?, 0.0, &logarithm)?)
            },
            |s| s.grad.mul(s.a()?)?.div(s.tensor_b()?),
        ],
    }

    /// The part of the gamma function of each element that lies below the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.igamma(0.0)?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    igamma, igamma_, igamma_out => IGAMMA: SECOND_ONLY, [
        "igamma(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [NOTHING, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::igamma),
        derivatives: [
            |s| Err(s.no_derivative()),
            |s| s.grad.mul(&gamma_density(s)?),
        ],
    }

    /// The part of the gamma function of each element that lies above the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.igammac(0.0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    igammac, igammac_, igammac_out => IGAMMAC: SECOND_ONLY, [
        "igammac(Tensor self, Tensor other) -> Tensor",
    ] {
        reads: [NOTHING, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::igammac),
        derivatives: [
            |s| Err(s.no_derivative()),
            |s| s.grad.neg()?.mul(&gamma_density(s)?),
        ],
    }
}
