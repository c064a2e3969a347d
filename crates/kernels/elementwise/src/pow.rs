//! Powers. A host number as the exponent has loops of its own, because squares, cubes and roots are
//! common; other powers go through the long tail's path (`chunked.rs`).

use plimsoll_core::{DTypeClass, Error, Result, Scalar};

use crate::binary::{Pair, Right, number};
use crate::on::On;
use plimsoll_engine::chunked::{self, Argument, Body};
use plimsoll_engine::input_dtype;
use plimsoll_engine::map::{Map1, map1};
use plimsoll_engine::match_dtype;
use plimsoll_engine::match_float;
use plimsoll_engine::number::Number;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::Level;
use plimsoll_engine::{CpuLaunch, Second};

/// `[base, exponent]`, or one of them a host number -> the power. Integers to negative powers are
/// what is left of 1 over the power: 0, or 1 and -1 for the bases 1 and -1.
pub fn pow(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    match second {
        Second::Right(exponent) => pow_scalar(launch, exponent),
        Second::Left(_) | Second::Tensor => chunked::run(launch, Argument::pair(second), Raise),
    }
}

/// Any power.
#[derive(Clone, Copy)]
struct Raise;

impl Body<2> for Raise {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [base, exponent]: [R; 2]) -> R {
        base.pow(exponent)
    }

    #[inline(always)]
    fn whole(self, [base, exponent]: [i64; 2]) -> i64 {
        if exponent >= 0 {
            return WholePower(exponent as u64).call(base, 1);
        }
        match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        }
    }
}

/// x to a power that every element shares.
#[derive(Clone, Copy)]
struct Power<R>(R);

impl<T: Float> Map1 for On<Power<T::Wide>, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        T::narrow(a.widen().pow(self.0.0))
    }
}

/// x to a whole power from 0 up, by squaring.
#[derive(Clone, Copy)]
struct WholePower(u64);

impl<N: Number> Pair<N> for WholePower {
    #[inline(always)]
    fn call(self, a: N, one: N) -> N {
        let (mut power, mut square, mut left) = (one, a, self.0);
        while left > 0 {
            if left & 1 == 1 {
                power = power.times(square);
            }
            square = square.times(square);
            left >>= 1;
        }
        power
    }
}

/// `[x]` -> x to the power of `exponent`. Integers take whole powers from 0 up.
fn pow_scalar(launch: &CpuLaunch<'_>, exponent: Scalar) -> Result<()> {
    let dtype = input_dtype(launch)?;
    let value = exponent.to_f64();
    // Squares and cubes by multiplication, which is exact where it can be and fast.
    if value == 2.0 || value == 3.0 || dtype.class() != DTypeClass::Float {
        if value < 0.0 {
            return Err(Error::invalid_argument(format!(
                "integers to the negative power {exponent} are not whole; convert to a float dtype first"
            ))
            .in_operation(launch.operation));
        }
        let power = WholePower(exponent.to_i64() as u64);
        return match_dtype!(dtype, T => {
            map1(launch, On::<_, T>::new(Right(power, number::<T>(Scalar::Int(1)))))
        });
    }
    match value {
        0.5 => crate::unary::sqrt(launch),
        -0.5 => crate::unary::rsqrt(launch),
        -1.0 => crate::unary::reciprocal(launch),
        _ => match_float!(launch, dtype, T => {
            map1(launch, On::<_, T>::new(Power(<T as Float>::Wide::of(value))))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{FLOATS, NUMBERS, check_binary, check_unary, float};

    #[test]
    fn powers_agree_with_f64() {
        for whole in [0.0, 1.0, 2.0, 3.0, 5.0] {
            check_unary("pow", &NUMBERS, 0.0, |l| pow_scalar(l, float(whole)), |x| x.powf(whole));
        }
        for power in [0.5, -0.5, -1.0, -2.0, 1.7] {
            // PyTorch takes the square root for 0.5, which differs from C's pow at -inf alone.
            check_unary(
                "pow",
                &FLOATS,
                0.0,
                |l| pow_scalar(l, float(power)),
                |x| match power {
                    0.5 => x.sqrt(),
                    -0.5 => 1.0 / x.sqrt(),
                    _ => x.powf(power),
                },
            );
        }
    }

    #[test]
    fn integers_refuse_negative_powers() {
        use plimsoll_engine::testing::{Held, launch};
        let x = Held::of(DType::I64, &[2], &[1.0, 2.0]);
        let error = launch(&[&x], &mut [x.clone()], 0, |l| pow_scalar(l, Scalar::Int(-1)));
        assert!(error.unwrap_err().is_invalid_argument());
    }

    #[test]
    fn powers_of_two_tensors_agree_with_f64() {
        let same = |dtype| dtype;
        check_binary("pow", &FLOATS, 1e-6, same, |l| pow(l, Second::Tensor), f64::powf);
        check_unary(
            "2 ** x",
            &FLOATS,
            1e-6,
            |l| pow(l, Second::Left(float(2.0))),
            |x| 2f64.powf(x),
        );
    }
}
