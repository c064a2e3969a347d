//! Comparisons of two operands of one dtype, or of an operand and a host number. The output is
//! bool. A NaN equals nothing and is below nothing.

use plimsoll_core::{Result, Scalar};
use smallvec::SmallVec;

use crate::on::On;
use plimsoll_engine::input_dtype;
use plimsoll_engine::map::{Map1, Map2, map1, map2};
use plimsoll_engine::number::Number;
use plimsoll_engine::simd::Level;
use plimsoll_engine::{CpuLaunch, Operand};
use plimsoll_engine::{Element, Truth, match_dtype};

/// The six comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

trait Test: Copy + Sync {
    fn holds<N: Number>(self, a: N, b: N) -> bool;
}

macro_rules! test {
    ($name:ident, |$a:ident, $b:ident| $value:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Test for $name {
            #[inline(always)]
            fn holds<N: Number>(self, $a: N, $b: N) -> bool {
                $value
            }
        }
    };
}

test!(Equal, |a, b| a.equals(b));
test!(NotEqual, |a, b| !a.equals(b));
test!(Less, |a, b| a.below(b));
test!(LessEqual, |a, b| a.below(b) | a.equals(b));
test!(Greater, |a, b| b.below(a));
test!(GreaterEqual, |a, b| b.below(a) | a.equals(b));

/// A test of two operands.
#[derive(Clone, Copy)]
struct Between<F>(F);

impl<F: Test, T: Number> Map2 for On<Between<F>, T> {
    type A = T;
    type B = T;
    type Out = Truth;
    #[inline(always)]
    fn call<L: Level>(self, a: T, b: T) -> Truth {
        Truth::new(self.0.0.holds(a.up(), b.up()))
    }
}

/// A test against a host number.
#[derive(Clone, Copy)]
struct Against<F, N>(F, N);

impl<F: Test, T: Number> Map1 for On<Against<F, T::Compute>, T> {
    type A = T;
    type Out = Truth;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> Truth {
        let Against(test, number) = self.0;
        Truth::new(test.holds(a.up(), number))
    }
}

/// [a, b] -> whether the comparison holds, as bool.
pub fn compare(launch: &CpuLaunch<'_>, comparison: Comparison) -> Result<()> {
    // a > b as b < a: two loops fewer to compile for every dtype and level.
    let mut inputs: SmallVec<[Operand<'_>; 2]> = SmallVec::from_slice(launch.inputs);
    if matches!(comparison, Comparison::Gt | Comparison::Ge) {
        inputs.reverse();
    }
    let launch = &CpuLaunch { inputs: &inputs, ..*launch };
    match_dtype!(input_dtype(launch)?, T => match comparison {
        Comparison::Eq => map2(launch, On::<_, T>::new(Between(Equal))),
        Comparison::Ne => map2(launch, On::<_, T>::new(Between(NotEqual))),
        Comparison::Lt | Comparison::Gt => map2(launch, On::<_, T>::new(Between(Less))),
        Comparison::Le | Comparison::Ge => map2(launch, On::<_, T>::new(Between(LessEqual))),
    })
}

/// `[x]` -> whether the comparison of x with `value` holds, as bool.
pub fn compare_scalar(launch: &CpuLaunch<'_>, comparison: Comparison, value: Scalar) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let number = <T as Number>::Compute::from_scalar(value);
        match comparison {
            Comparison::Eq => map1(launch, On::<_, T>::new(Against(Equal, number))),
            Comparison::Ne => map1(launch, On::<_, T>::new(Against(NotEqual, number))),
            Comparison::Lt => map1(launch, On::<_, T>::new(Against(Less, number))),
            Comparison::Le => map1(launch, On::<_, T>::new(Against(LessEqual, number))),
            Comparison::Gt => map1(launch, On::<_, T>::new(Against(Greater, number))),
            Comparison::Ge => map1(launch, On::<_, T>::new(Against(GreaterEqual, number))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{
        Held, Lot, assert_close, check_binary, float, launch_all, shapes,
    };

    type Test = (Comparison, fn(f64, f64) -> bool);

    const TESTS: [Test; 6] = [
        (Comparison::Eq, |a, b| a == b),
        (Comparison::Ne, |a, b| a != b),
        (Comparison::Lt, |a, b| a < b),
        (Comparison::Le, |a, b| a <= b),
        (Comparison::Gt, |a, b| a > b),
        (Comparison::Ge, |a, b| a >= b),
    ];

    #[test]
    fn comparisons_agree_with_f64() {
        for (comparison, truth) in TESTS {
            let name = format!("{comparison:?}");
            let kernel = |launch: &CpuLaunch<'_>| compare(launch, comparison);
            check_binary(
                &name,
                &DType::ALL,
                0.0,
                |_| DType::Bool,
                kernel,
                |a, b| f64::from(truth(a, b)),
            );
        }
    }

    #[test]
    fn comparisons_with_numbers_agree_with_f64() {
        let mut lot = Lot(3);
        for (comparison, truth) in TESTS {
            for (dtype, shape) in DType::ALL.into_iter().cycle().zip(shapes()) {
                let x = Held::random(&mut lot, dtype, &shape, true);
                let mut out = [Held::output(&mut lot, DType::Bool, &shape)];
                let want: Vec<f64> =
                    x.values().into_iter().map(|x| f64::from(truth(x, 1.0))).collect();
                let kernel = |l: &CpuLaunch<'_>| compare_scalar(l, comparison, float(1.0));
                launch_all(&[&x], &mut out, 0, kernel, |out| {
                    assert_close(&out[0].values(), &want, 0.0, 0.0, "compare_scalar");
                });
            }
        }
    }
}
