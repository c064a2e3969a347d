//! Reductions: sums, means, products, extremes and truth over some of a tensor's dimensions.
//! `fold.rs` has the loops, `geometry.rs` sorts dimensions into kept and reduced ones, `arg.rs`
//! finds positions of extremes, `float_folds.rs` has norms and variances.
//!
//! f32 is summed in f32 lanes over short blocks whose results are added in f64, so the error does
//! not grow with the length. The order of additions depends on sizes and strides, never on the
//! number of threads.

mod arg;
mod float_folds;
mod fold;
mod geometry;

use std::marker::PhantomData;

use plimsoll_core::{Error, Result};

pub use arg::{argmax, argmin};
pub use float_folds::{count_nonzero, nansum, variance, vector_norm};
use fold::{Fold, fold};
pub(super) use geometry::Geometry;

use plimsoll_engine::map::operands;
use plimsoll_engine::match_dtype;
use plimsoll_engine::match_float;
use plimsoll_engine::number::Number;
use plimsoll_engine::{CpuLaunch, Meta};

/// Scratch of a reduction: none, whatever the layouts. Part of the interface so that a kernel that
/// needs some can say so.
pub fn workspace_bytes(_inputs: &[&Meta], _outputs: &[Meta]) -> usize {
    0
}

/// Carries the element type of a fold.
struct Of<T>(PhantomData<fn() -> T>);

impl<T> Clone for Of<T> {
    fn clone(&self) -> Of<T> {
        *self
    }
}

impl<T> Copy for Of<T> {}

/// Sums of floats: lanes in the type they compute in, totals in f64.
#[derive(Clone, Copy)]
struct FloatSum<T>(Of<T>);
/// Sums of integers and bools, wrapping in i64.
#[derive(Clone, Copy)]
struct WholeSum<T>(Of<T>);
/// Products of floats.
#[derive(Clone, Copy)]
struct FloatProduct<T>(Of<T>);
/// Products of integers and bools, wrapping in i64.
#[derive(Clone, Copy)]
struct WholeProduct<T>(Of<T>);

macro_rules! arithmetic_fold {
    ($name:ident, $lane:ty, $as_total:ident, $total:ty, $identity:expr, $lane_of:expr, $join:ident) => {
        impl<T: Number> Fold for $name<T> {
            type In = T;
            type Lane = $lane;
            type Total = $total;
            #[inline(always)]
            fn empty_lane(self) -> Self::Lane {
                <$lane>::from_number($identity)
            }
            #[inline(always)]
            fn lane(self, value: T) -> Self::Lane {
                $lane_of(value)
            }
            #[inline(always)]
            fn join(self, a: Self::Lane, b: Self::Lane) -> Self::Lane {
                a.$join(b)
            }
            #[inline(always)]
            fn total(self, lane: Self::Lane) -> Self::Total {
                lane.$as_total()
            }
            #[inline(always)]
            fn join_totals(self, a: Self::Total, b: Self::Total) -> Self::Total {
                a.$join(b)
            }
        }
    };
}

arithmetic_fold!(FloatSum, T::Compute, as_f64, f64, 0i64, T::up, plus);
arithmetic_fold!(WholeSum, i64, as_i64, i64, 0i64, T::as_i64, plus);
arithmetic_fold!(FloatProduct, T::Compute, as_f64, f64, 1i64, T::up, times);
arithmetic_fold!(WholeProduct, i64, as_i64, i64, 1i64, T::as_i64, times);

/// The larger (`MAX`) or smaller value; a NaN wins.
#[derive(Clone, Copy)]
struct Extreme<T, const MAX: bool>(Of<T>);

impl<T: Number, const MAX: bool> Fold for Extreme<T, MAX> {
    type In = T;
    type Lane = T::Compute;
    type Total = T::Compute;
    #[inline(always)]
    fn empty_lane(self) -> T::Compute {
        if MAX { T::Compute::LOWEST } else { T::Compute::HIGHEST }
    }
    #[inline(always)]
    fn lane(self, value: T) -> T::Compute {
        value.up()
    }
    #[inline(always)]
    fn join(self, a: T::Compute, b: T::Compute) -> T::Compute {
        let keep = if MAX { b.below(a) } else { a.below(b) };
        if keep | a.is_nan() { a } else { b }
    }
    #[inline(always)]
    fn total(self, lane: T::Compute) -> T::Compute {
        lane
    }
    #[inline(always)]
    fn join_totals(self, a: T::Compute, b: T::Compute) -> T::Compute {
        self.join(a, b)
    }
}

/// Whether any (`ANY`) or all values are not zero.
#[derive(Clone, Copy)]
struct Holds<T, const ANY: bool>(Of<T>);

impl<T: Number, const ANY: bool> Fold for Holds<T, ANY> {
    type In = T;
    type Lane = u8;
    type Total = u8;
    #[inline(always)]
    fn empty_lane(self) -> u8 {
        u8::from(!ANY)
    }
    #[inline(always)]
    fn lane(self, value: T) -> u8 {
        u8::from(value.is_nonzero())
    }
    #[inline(always)]
    fn join(self, a: u8, b: u8) -> u8 {
        if ANY { a | b } else { a & b }
    }
    #[inline(always)]
    fn total(self, lane: u8) -> u8 {
        lane
    }
    #[inline(always)]
    fn join_totals(self, a: u8, b: u8) -> u8 {
        self.join(a, b)
    }
}

/// Runs a fold and writes its totals, through `$finish`, in the output's dtype.
macro_rules! fold_into_output {
    ($launch:expr, $reduced:expr, $fold:expr, |$total:ident| $finish:expr) => {{
        let [out, input] = operands::<2>($launch)?;
        let geometry = Geometry::new($launch, &input, &out, $reduced)?;
        match_dtype!(out.dtype(), O => {
            fold(&geometry, $fold, &|at: *mut u8, $total| {
                // SAFETY: `fold` hands out addresses of the output's own elements, which are `O`.
                unsafe { *at.cast::<O>() = O::from_number($finish) }
            });
        });
        Ok(())
    }};
}

/// `[x]` -> the sum over the dimensions `reduced`, in the output's dtype. The output's dimensions
/// are the others in order, or all with the reduced ones of size 1.
pub fn sum(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let dtype = plimsoll_engine::input_dtype(launch)?;
    if dtype.is_float() {
        return match_float!(launch, dtype, T => {
            fold_into_output!(launch, reduced, FloatSum(Of::<T>(PhantomData)), |total| total)
        });
    }
    match_dtype!(dtype, T => {
        fold_into_output!(launch, reduced, WholeSum(Of::<T>(PhantomData)), |total| total)
    })
}

/// `[x]` -> the mean over the dimensions `reduced`; NaN over none. Floats only.
pub fn mean(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let shape = launch.inputs.first().map_or(&[][..], |input| input.shape());
    let count: usize = reduced.iter().filter_map(|&d| shape.get(d)).product();
    match_float!(launch, plimsoll_engine::input_dtype(launch)?, T => {
        fold_into_output!(launch, reduced, FloatSum(Of::<T>(PhantomData)), |total| total / count as f64)
    })
}

/// `[x]` -> the product over the dimensions `reduced`, in the output's dtype.
pub fn prod(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let dtype = plimsoll_engine::input_dtype(launch)?;
    if dtype.is_float() {
        return match_float!(launch, dtype, T => {
            fold_into_output!(launch, reduced, FloatProduct(Of::<T>(PhantomData)), |total| total)
        });
    }
    match_dtype!(dtype, T => {
        fold_into_output!(launch, reduced, WholeProduct(Of::<T>(PhantomData)), |total| total)
    })
}

/// `[x]` -> the largest value over the dimensions `reduced`; a NaN wins.
pub fn amax(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    something_to_reduce(launch, reduced)?;
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => {
        fold_into_output!(launch, reduced, Extreme::<T, true>(Of(PhantomData)), |total| total)
    })
}

/// `[x]` -> the smallest value over the dimensions `reduced`; a NaN wins.
pub fn amin(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    something_to_reduce(launch, reduced)?;
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => {
        fold_into_output!(launch, reduced, Extreme::<T, false>(Of(PhantomData)), |total| total)
    })
}

/// `[x]` -> whether any value over the dimensions `reduced` is not zero; false over none.
pub fn any(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => {
        fold_into_output!(launch, reduced, Holds::<T, true>(Of(PhantomData)), |total| total)
    })
}

/// `[x]` -> whether all values over the dimensions `reduced` are not zero; true over none.
pub fn all(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => {
        fold_into_output!(launch, reduced, Holds::<T, false>(Of(PhantomData)), |total| total)
    })
}

/// An extreme of nothing does not exist.
fn something_to_reduce(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    let empty = reduced.iter().any(|&d| input.shape().get(d) == Some(&0));
    if empty && out.layout().numel() > 0 {
        return Err(Error::shape(
            launch.operation,
            format!(
                "shape {:?} has no elements along dimensions {reduced:?}, so there is none to choose; \
                 reduce over dimensions of nonzero size",
                input.shape()
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
