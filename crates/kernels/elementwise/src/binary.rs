//! Arithmetic of two operands, or of an operand and a host number. Comparisons are in `compare.rs`.
//!
//! Inputs and output have one dtype (dispatch promoted them). Half types compute in f32 and round
//! once; a host number meets them unrounded, as in PyTorch. Integers wrap; bool `add` is `or` and
//! `mul` is `and`. In-place use is fine for all of them.

use plimsoll_core::{Result, Scalar};

use crate::on::On;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::input_dtype;
use plimsoll_engine::map::{Map1, Map2, map1, map2};
use plimsoll_engine::match_float;
use plimsoll_engine::number::Number;
use plimsoll_engine::simd::Level;
use plimsoll_engine::{Element, match_dtype};

/// A function of two numbers of one type.
pub(super) trait Pair<N>: Copy + Sync {
    fn call(self, a: N, b: N) -> N;
}

/// A pair function with both operands from tensors.
#[derive(Clone, Copy)]
struct Both<F>(F);

impl<T: Number, F: Pair<T::Compute>> Map2 for On<Both<F>, T> {
    type A = T;
    type B = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T, b: T) -> T {
        T::down(self.0.0.call(a.up(), b.up()))
    }
}

/// A pair function whose right operand is a host number.
#[derive(Clone, Copy)]
pub(super) struct Right<F, N>(pub(super) F, pub(super) N);
/// A pair function whose left operand is a host number.
#[derive(Clone, Copy)]
struct Left<F, N>(F, N);

impl<T: Number, F: Pair<T::Compute>> Map1 for On<Right<F, T::Compute>, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        let Right(f, number) = self.0;
        T::down(f.call(a.up(), number))
    }
}

impl<T: Number, F: Pair<T::Compute>> Map1 for On<Left<F, T::Compute>, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        let Left(f, number) = self.0;
        T::down(f.call(number, a.up()))
    }
}

#[derive(Clone, Copy)]
struct Add;
#[derive(Clone, Copy)]
struct Sub;
#[derive(Clone, Copy)]
struct Mul;
#[derive(Clone, Copy)]
struct Div;
#[derive(Clone, Copy)]
struct Maximum;
#[derive(Clone, Copy)]
struct Minimum;
/// `a + alpha * b`.
#[derive(Clone, Copy)]
struct AddScaled<N>(N);

impl<N: Number> Pair<N> for Add {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        a.plus(b)
    }
}
impl<N: Number> Pair<N> for Sub {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        a.minus(b)
    }
}
impl<N: Number> Pair<N> for Mul {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        a.times(b)
    }
}
impl<N: Number> Pair<N> for Div {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        a.over(b)
    }
}
impl<N: Number> Pair<N> for AddScaled<N> {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        a.plus(self.0.times(b))
    }
}
impl<N: Number> Pair<N> for Maximum {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        if b.below(a) | a.is_nan() { a } else { b }
    }
}
impl<N: Number> Pair<N> for Minimum {
    #[inline(always)]
    fn call(self, a: N, b: N) -> N {
        if a.below(b) | a.is_nan() { a } else { b }
    }
}

/// A host number as the numbers that `T` is computed in.
pub(super) fn number<T: Number>(value: Scalar) -> T::Compute {
    T::Compute::from_scalar(value)
}

/// [a, b] -> a + alpha b.
pub fn add(launch: &CpuLaunch<'_>, alpha: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => if alpha.to_f64() == 1.0 {
        map2(launch, On::<_, T>::new(Both(Add)))
    } else {
        map2(launch, On::<_, T>::new(Both(AddScaled(number::<T>(alpha)))))
    })
}

/// [a, b] -> a - alpha b.
pub fn sub(launch: &CpuLaunch<'_>, alpha: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => if alpha.to_f64() == 1.0 {
        map2(launch, On::<_, T>::new(Both(Sub)))
    } else {
        let minus = number::<T>(Scalar::Int(-1)).times(number::<T>(alpha));
        map2(launch, On::<_, T>::new(Both(AddScaled(minus))))
    })
}

/// [a, b] -> a b.
pub fn mul(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => map2(launch, On::<_, T>::new(Both(Mul))))
}

/// [a, b] -> a / b, floats only.
pub fn div(launch: &CpuLaunch<'_>) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => map2(launch, On::<_, T>::new(Both(Div))))
}

/// [a, b] -> the larger; a NaN wins.
pub fn maximum(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => map2(launch, On::<_, T>::new(Both(Maximum))))
}

/// [a, b] -> the smaller; a NaN wins.
pub fn minimum(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => map2(launch, On::<_, T>::new(Both(Minimum))))
}

/// `[x]` -> x + value.
pub fn add_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Add, number::<T>(value))))
    })
}

/// `[x]` -> x - value.
pub fn sub_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Sub, number::<T>(value))))
    })
}

/// `[x]` -> value - x.
pub fn rsub_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Left(Sub, number::<T>(value))))
    })
}

/// `[x]` -> x value.
pub fn mul_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Mul, number::<T>(value))))
    })
}

/// `[x]` -> x / value, floats only.
pub fn div_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Div, number::<T>(value))))
    })
}

/// `[x]` -> value / x, floats only.
pub fn rdiv_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Left(Div, number::<T>(value))))
    })
}

/// `[x]` -> the larger of x and value; a NaN wins.
pub fn maximum_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Maximum, number::<T>(value))))
    })
}

/// `[x]` -> the smaller of x and value; a NaN wins.
pub fn minimum_scalar(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        map1(launch, On::<_, T>::new(Right(Minimum, number::<T>(value))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{FLOATS, NUMBERS, check_binary, check_unary, float};

    #[test]
    fn arithmetic_agrees_with_f64() {
        let same = |dtype| dtype;
        let one = Scalar::Int(1);
        check_binary("add", &NUMBERS, 0.0, same, |l| add(l, one), |a, b| a + b);
        check_binary(
            "add alpha",
            &NUMBERS,
            1e-5,
            same,
            |l| add(l, Scalar::Int(3)),
            |a, b| a + 3.0 * b,
        );
        check_binary("sub", &NUMBERS, 0.0, same, |l| sub(l, one), |a, b| a - b);
        check_binary(
            "sub alpha",
            &NUMBERS,
            1e-5,
            same,
            |l| sub(l, Scalar::Int(2)),
            |a, b| a - 2.0 * b,
        );
        check_binary("mul", &NUMBERS, 0.0, same, mul, |a, b| a * b);
        check_binary("div", &FLOATS, 0.0, same, div, |a, b| a / b);
    }

    #[test]
    fn extremes_let_a_nan_win() {
        let same = |dtype| dtype;
        let nan_or =
            |a: f64, b: f64, value: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { value };
        check_binary("maximum", &DType::ALL, 0.0, same, maximum, |a, b| nan_or(a, b, a.max(b)));
        check_binary("minimum", &DType::ALL, 0.0, same, minimum, |a, b| nan_or(a, b, a.min(b)));
        let three = float(3.0);
        check_unary(
            "maximum_scalar",
            &NUMBERS,
            0.0,
            |l| maximum_scalar(l, three),
            |x| nan_or(x, 3.0, x.max(3.0)),
        );
        check_unary(
            "minimum_scalar",
            &NUMBERS,
            0.0,
            |l| minimum_scalar(l, three),
            |x| nan_or(x, 3.0, x.min(3.0)),
        );
    }

    #[test]
    fn bools_add_by_or_and_multiply_by_and() {
        let (bools, same) = ([DType::Bool], |dtype| dtype);
        check_binary("add", &bools, 0.0, same, |l| add(l, Scalar::Int(1)), |a, b| a.max(b));
        check_binary("mul", &bools, 0.0, same, mul, |a, b| a.min(b));
    }

    #[test]
    fn host_numbers_agree_with_f64() {
        let two = Scalar::Int(2);
        check_unary("add_scalar", &NUMBERS, 0.0, |l| add_scalar(l, two), |x| x + 2.0);
        check_unary("sub_scalar", &NUMBERS, 0.0, |l| sub_scalar(l, two), |x| x - 2.0);
        check_unary("rsub_scalar", &NUMBERS, 0.0, |l| rsub_scalar(l, two), |x| 2.0 - x);
        check_unary("mul_scalar", &NUMBERS, 0.0, |l| mul_scalar(l, two), |x| x * 2.0);
        check_unary("div_scalar", &FLOATS, 0.0, |l| div_scalar(l, two), |x| x / 2.0);
        check_unary("rdiv_scalar", &FLOATS, 0.0, |l| rdiv_scalar(l, two), |x| 2.0 / x);
    }

    #[test]
    fn integers_wrap() {
        use plimsoll_engine::testing::{Held, launch};
        let x = Held::of(DType::U8, &[2], &[200.0, 255.0]);
        let mut out = [x.clone()];
        launch(&[&x, &x], &mut out, 0, |l| add(l, Scalar::Int(1))).unwrap();
        assert_eq!(out[0].values(), [144.0, 254.0]);
    }
}
