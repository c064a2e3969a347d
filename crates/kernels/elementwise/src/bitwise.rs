//! Integers as bits: and, or, exclusive or, not, shifts; and their common divisors.

use plimsoll_core::{DType, Result};

use plimsoll_engine::chunked::{Argument, run_calling_whole};
use plimsoll_engine::{CpuLaunch, Second, input_dtype};

use crate::call::two_whole;

/// Declares `pub fn $name(launch, second)` for a function of two integers.
macro_rules! whole_pair {
    ($(#[$doc:meta])* $name:ident, |$a:ident, $b:ident| $value:expr) => {
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
            two_whole(launch, second, |$a, $b| $value)
        }
    };
}

whole_pair!(
    /// `[a, b]`, or one of them a host number -> the bits that both have.
    bitwise_and, |a, b| a & b
);
whole_pair!(
    /// The bits that one of them has.
    bitwise_or, |a, b| a | b
);
whole_pair!(
    /// The bits that just one of them has.
    bitwise_xor, |a, b| a ^ b
);
whole_pair!(
    /// The largest number that divides both.
    gcd, |a, b| greatest_divisor(a, b)
);
whole_pair!(
    /// The smallest number that both divide; 0 if one of them is 0.
    lcm, |a, b| match greatest_divisor(a, b) {
        0 => 0,
        divisor => a.wrapping_div(divisor).wrapping_mul(b).wrapping_abs(),
    }
);

fn greatest_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.wrapping_abs(), b.wrapping_abs());
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

/// `[x]` -> every bit flipped; a bool negated.
pub fn bitwise_not(launch: &CpuLaunch<'_>) -> Result<()> {
    let is_bool = input_dtype(launch)? == DType::Bool;
    run_calling_whole(launch, [Argument::Input(0)], &|[x]| {
        if is_bool { i64::from(x == 0) } else { !x }
    })
}

/// `[a, bits]`, or one of them a host number -> a moved toward the higher bits; 0 where there are
/// not as many, or fewer than none.
pub fn left_shift(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    let width = width(launch)?;
    run_calling_whole(launch, Argument::pair(second), &|[a, bits]| {
        if (0..width).contains(&bits) { a.wrapping_shl(bits as u32) } else { 0 }
    })
}

/// As [`left_shift`], toward the lower bits; what comes in is the sign.
pub fn right_shift(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    let width = width(launch)?;
    run_calling_whole(launch, Argument::pair(second), &|[a, bits]| {
        if (0..width).contains(&bits) { a >> bits } else { a >> 63 }
    })
}

fn width(launch: &CpuLaunch<'_>) -> Result<i64> {
    Ok(input_dtype(launch)?.size_bytes() as i64 * 8)
}
