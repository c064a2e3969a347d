//! Folds of floats beyond sums and extremes: sums that leave NaN out, powers for norms, and the
//! second moment around the mean; and the count of what is not zero, for every dtype.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{DType, Result};

use super::fold::{Fold, fold};
use super::{Geometry, Of};
use plimsoll_engine::map::operands;
use plimsoll_engine::number::Number;
use plimsoll_engine::{CpuLaunch, match_dtype, match_float};

/// What an element counts for in a sum.
pub(super) trait Term: Copy + Sync {
    fn of<N: Number>(self, value: N) -> f64;
}

/// Sums of terms in f64.
#[derive(Clone, Copy)]
struct Terms<T, F>(Of<T>, F);

impl<T: Number, F: Term> Fold for Terms<T, F> {
    type In = T;
    type Lane = f64;
    type Total = f64;
    #[inline(always)]
    fn empty_lane(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn lane(self, value: T) -> f64 {
        self.1.of(value.up())
    }
    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    fn total(self, lane: f64) -> f64 {
        lane
    }
    #[inline(always)]
    fn join_totals(self, a: f64, b: f64) -> f64 {
        a + b
    }
}

/// The terms of sums that are seldom asked for: one body for all of them, because a body for each
/// and every dtype takes long to compile.
#[derive(Clone, Copy)]
enum Rare {
    /// The element, or 0 for a NaN.
    NotNan,
    /// The absolute value.
    Absolute,
    /// The absolute value to a power.
    Power(f64),
    /// 1 for what is not zero.
    NotZero,
}

impl Term for Rare {
    #[inline(always)]
    fn of<N: Number>(self, value: N) -> f64 {
        match self {
            Rare::NotNan if value.is_nan() => 0.0,
            Rare::NotNan => value.as_f64(),
            Rare::Absolute => value.as_f64().abs(),
            Rare::Power(power) => value.as_f64().abs().powf(power),
            Rare::NotZero => f64::from(u8::from(value.is_nonzero())),
        }
    }
}

/// The square.
#[derive(Clone, Copy)]
struct Square;
impl Term for Square {
    #[inline(always)]
    fn of<N: Number>(self, value: N) -> f64 {
        let value = value.as_f64();
        value * value
    }
}

/// Sums of squares in lanes of the dtype that is computed in: of float32 for the narrow ones, which
/// is twice as fast and has less range.
#[derive(Clone, Copy)]
struct Squares<T>(Of<T>);

impl<T: Number> Fold for Squares<T> {
    type In = T;
    type Lane = T::Compute;
    type Total = f64;
    #[inline(always)]
    fn empty_lane(self) -> T::Compute {
        T::Compute::from_number(0i64)
    }
    #[inline(always)]
    fn lane(self, value: T) -> T::Compute {
        value.up().times(value.up())
    }
    #[inline(always)]
    fn join(self, a: T::Compute, b: T::Compute) -> T::Compute {
        a.plus(b)
    }
    #[inline(always)]
    fn total(self, lane: T::Compute) -> f64 {
        lane.as_f64()
    }
    #[inline(always)]
    fn join_totals(self, a: f64, b: f64) -> f64 {
        a + b
    }
}

/// Sums of squares whose terms float32 holds without loss that counts.
const HELD: Range<f64> = 1e-25..1e35;

/// The largest (if true) or smallest absolute value; a NaN wins.
#[derive(Clone, Copy)]
struct AbsoluteExtreme<T>(Of<T>, bool);

impl<T: Number> Fold for AbsoluteExtreme<T> {
    type In = T;
    type Lane = f64;
    type Total = f64;
    #[inline(always)]
    fn empty_lane(self) -> f64 {
        if self.1 { 0.0 } else { f64::INFINITY }
    }
    #[inline(always)]
    fn lane(self, value: T) -> f64 {
        value.up().as_f64().abs()
    }
    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        let keep = if self.1 { b < a } else { a < b };
        if keep | a.is_nan() { a } else { b }
    }
    #[inline(always)]
    fn total(self, lane: f64) -> f64 {
        lane
    }
    #[inline(always)]
    fn join_totals(self, a: f64, b: f64) -> f64 {
        self.join(a, b)
    }
}

/// Sums of the distances from one of the elements, and of their squares. What cancels when that
/// element lies apart from the others is far below the digits of a float32; for f64 `around` is the
/// mean of what was seen so far, at the price of a division.
#[derive(Clone, Copy)]
struct Moments<T>(Of<T>);

#[derive(Clone, Copy)]
struct Moment {
    count: f64,
    around: f64,
    sum: f64,
    squares: f64,
}

impl Moment {
    /// Both, each around its own mean.
    #[inline(always)]
    fn join_means(self, other: Moment) -> Moment {
        let count = self.count + other.count;
        let share = if count == 0.0 { 0.0 } else { other.count / count };
        let apart = other.around - self.around;
        Moment {
            count,
            around: self.around + apart * share,
            sum: 0.0,
            // An empty side adds nothing, also where the square of the distance is infinite.
            squares: self.squares + other.squares + apart * (apart * self.count * share),
        }
    }

    fn variance(self, correction: f64) -> f64 {
        let rest = (self.count - correction).max(0.0);
        if self.count == 0.0 {
            return f64::NAN;
        }
        let spread = self.squares - self.sum * self.sum / self.count;
        // A NaN stays one.
        (if spread < 0.0 { 0.0 } else { spread }) / rest
    }
}

impl<T: Number> Fold for Moments<T> {
    type In = T;
    type Lane = Moment;
    type Total = Moment;
    #[inline(always)]
    fn empty_lane(self) -> Moment {
        Moment { count: 0.0, around: 0.0, sum: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    fn lane(self, value: T) -> Moment {
        Moment { count: 1.0, around: value.up().as_f64(), sum: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    fn join(self, a: Moment, b: Moment) -> Moment {
        if size_of::<T>() == size_of::<f64>() {
            return a.join_means(b);
        }
        let around = if a.count == 0.0 { b.around } else { a.around };
        let apart = if b.count == 0.0 { 0.0 } else { b.around - around };
        Moment {
            count: a.count + b.count,
            around,
            sum: a.sum + b.sum + b.count * apart,
            squares: a.squares + b.squares + apart * (2.0 * b.sum + b.count * apart),
        }
    }
    #[inline(always)]
    fn total(self, lane: Moment) -> Moment {
        lane
    }
    #[inline(always)]
    fn join_totals(self, a: Moment, b: Moment) -> Moment {
        self.join(a, b)
    }
}

/// Runs a fold and writes its totals, through `$finish`, in the output's float dtype.
macro_rules! fold_floats {
    ($launch:expr, $reduced:expr, $T:ident => $fold:expr, |$total:ident| $finish:expr) => {{
        let dtype = plimsoll_engine::input_dtype($launch)?;
        match_float!($launch, dtype, $T => {
            let [out, input] = operands::<2>($launch)?;
            let geometry = Geometry::new($launch, &input, &out, $reduced)?;
            plimsoll_engine::map::check::<$T>($launch, &out)?;
            fold(&geometry, $fold, &|at: *mut u8, $total| {
                // SAFETY: `fold` hands out addresses of the output's own elements, which are of
                // this dtype.
                unsafe { *at.cast::<$T>() = <$T as Number>::from_number($finish) }
            });
            Ok(())
        })
    }};
}

fn of<T>() -> Of<T> {
    Of(PhantomData)
}

/// `[x]` -> the sum over the dimensions `reduced` without NaN. Floats only.
pub fn nansum(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    fold_floats!(launch, reduced, T => Terms(of::<T>(), Rare::NotNan), |total| total)
}

/// `[x]` -> how many elements over the dimensions `reduced` are not zero, as i64.
pub fn count_nonzero(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    plimsoll_engine::map::check::<i64>(launch, &out)?;
    let geometry = Geometry::new(launch, &input, &out, reduced)?;
    match_dtype!(input.dtype(), T => fold(&geometry, Terms(of::<T>(), Rare::NotZero), &|at: *mut u8, total| {
        // SAFETY: `fold` hands out addresses of the output's own elements, which are i64.
        unsafe { *at.cast::<i64>() = total as i64 }
    }));
    Ok(())
}

/// `[x]` -> the variance over the dimensions `reduced`, its sum of squares divided by the count
/// less `correction`; its square root if `root`. Floats only.
pub fn variance(
    launch: &CpuLaunch<'_>,
    reduced: &[usize],
    correction: f64,
    root: bool,
) -> Result<()> {
    let finish = |total: Moment| {
        let variance = total.variance(correction);
        if root { variance.sqrt() } else { variance }
    };
    fold_floats!(launch, reduced, T => Moments(of::<T>()), |total| finish(total))
}

/// `[x]` -> the norm of order `order` over the dimensions `reduced`. Floats only.
pub fn vector_norm(launch: &CpuLaunch<'_>, reduced: &[usize], order: f64) -> Result<()> {
    if order == 2.0 {
        let all_held = AtomicBool::new(true);
        let finish = |total: f64| {
            if !HELD.contains(&total) {
                all_held.store(false, Ordering::Relaxed);
            }
            total.sqrt()
        };
        let fast: Result<()> =
            fold_floats!(launch, reduced, T => Squares(of::<T>()), |total| finish(total));
        if all_held.into_inner() || launch.inputs.first().is_some_and(|x| x.dtype() == DType::F64) {
            return fast;
        }
        // Very large or small, not finite, or all zeros: once more, in f64.
        fold_floats!(launch, reduced, T => Terms(of::<T>(), Square), |total| total.sqrt())
    } else if order == 1.0 {
        fold_floats!(launch, reduced, T => Terms(of::<T>(), Rare::Absolute), |total| total)
    } else if order == 0.0 {
        fold_floats!(launch, reduced, T => Terms(of::<T>(), Rare::NotZero), |total| total)
    } else if order.is_infinite() {
        fold_floats!(launch, reduced, T => AbsoluteExtreme(of::<T>(), order > 0.0), |total| total)
    } else {
        fold_floats!(launch, reduced, T => Terms(of::<T>(), Rare::Power(order)), |total| total.powf(1.0 / order))
    }
}
