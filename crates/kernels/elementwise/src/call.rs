//! Functions that are called once for each element, in f64 or i64 whatever the dtype: no loop is
//! compiled for them. Half types and float32 round the f64 result once.

use plimsoll_core::{DType, Result};

use plimsoll_engine::chunked::{Argument, run_calling, run_calling_whole};
use plimsoll_engine::real::Float;
use plimsoll_engine::{CpuLaunch, Second, input_dtype};

/// `[x]` -> f(x).
pub fn one(launch: &CpuLaunch<'_>, f: fn(f64) -> f64) -> Result<()> {
    run_calling(launch, [Argument::Input(0)], &|[x]| f(x))
}

/// Rounds to what `dtype` holds. PyTorch rounds half types between the steps of some functions, and
/// what is computed beside it must do so too.
pub fn rounding(dtype: DType) -> fn(f64) -> f64 {
    match dtype {
        DType::F16 => |x| f64::from(half::f16::narrow(x as f32).widen()),
        DType::BF16 => |x| f64::from(half::bf16::narrow(x as f32).widen()),
        DType::F32 => |x| f64::from(x as f32),
        _ => |x| x,
    }
}

/// `[a, b]`, or one of them a host number -> a function that is computed in f32 for float32 and
/// halves, where PyTorch's rounding shows.
pub fn two_in(
    launch: &CpuLaunch<'_>,
    second: Second,
    narrow: fn(f32, f32) -> f32,
    wide: fn(f64, f64) -> f64,
) -> Result<()> {
    if input_dtype(launch)? == DType::F64 {
        return two(launch, second, wide);
    }
    run_calling(launch, Argument::pair(second), &|[a, b]| f64::from(narrow(a as f32, b as f32)))
}

/// `[x]` -> f(x) with host numbers beside it.
pub fn one_with<T: Copy + Sync>(
    launch: &CpuLaunch<'_>,
    numbers: T,
    f: fn(f64, T) -> f64,
) -> Result<()> {
    run_calling(launch, [Argument::Input(0)], &|[x]| f(x, numbers))
}

/// `[a, b]`, or one of them a host number -> f(a, b).
pub fn two(launch: &CpuLaunch<'_>, second: Second, f: fn(f64, f64) -> f64) -> Result<()> {
    run_calling(launch, Argument::pair(second), &|[a, b]| f(a, b))
}

/// `[a, b]`, or one of them a host number -> f(a, b) of integers and bools.
pub fn two_whole(launch: &CpuLaunch<'_>, second: Second, f: fn(i64, i64) -> i64) -> Result<()> {
    run_calling_whole(launch, Argument::pair(second), &|[a, b]| f(a, b))
}

/// Whether a condition holds of each element; integers are looked at as f64.
pub fn holds(launch: &CpuLaunch<'_>, f: fn(f64) -> bool) -> Result<()> {
    run_calling(launch, [Argument::Input(0)], &|[x]| f64::from(u8::from(f(x))))
}

/// `[a, b]`, or one of them a host number -> a truth for each pair of whether they are nonzero.
pub fn truths(launch: &CpuLaunch<'_>, second: Second, f: fn(bool, bool) -> bool) -> Result<()> {
    if input_dtype(launch)?.is_float() {
        return run_calling(launch, Argument::pair(second), &|[a, b]| {
            f64::from(u8::from(f(a != 0.0, b != 0.0)))
        });
    }
    run_calling_whole(launch, Argument::pair(second), &|[a, b]| i64::from(f(a != 0, b != 0)))
}
