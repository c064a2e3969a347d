//! Dtype rules, written from PyTorch's documentation and not from `plimsoll_core`: which dtype a
//! result has, and how a number becomes a value of that dtype (rounded once, or wrapped).

use plimsoll_core::{DType, DTypeClass};

use super::{Array, Number};

/// Promotion of two dtypes, as PyTorch's table has it. Rows and columns: bool u8 i8 i16 i32 i64
/// f16 bf16 f32 f64.
pub fn lattice(a: DType, b: DType) -> DType {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8};
    const TABLE: [[DType; 10]; 10] = [
        [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64],
        [U8, U8, I16, I16, I32, I64, F16, BF16, F32, F64],
        [I8, I16, I8, I16, I32, I64, F16, BF16, F32, F64],
        [I16, I16, I16, I16, I32, I64, F16, BF16, F32, F64],
        [I32, I32, I32, I32, I32, I64, F16, BF16, F32, F64],
        [I64, I64, I64, I64, I64, I64, F16, BF16, F32, F64],
        [F16, F16, F16, F16, F16, F16, F16, F32, F32, F64],
        [BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64],
        [F32, F32, F32, F32, F32, F32, F32, F32, F32, F64],
        [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64],
    ];
    let place = |d: DType| DType::ALL.iter().position(|&x| x == d).expect("a dtype");
    TABLE[place(a)][place(b)]
}

/// How much an operand has to say about the result's dtype: host numbers least, then
/// zero-dimensional tensors, then tensors with dimensions. A weaker operand only counts if its
/// class is higher.
fn rank(array: &Array) -> u8 {
    if array.is_host_number() {
        0
    } else if array.shape().is_empty() {
        1
    } else {
        2
    }
}

/// The dtype that operands are brought to before an elementwise operation.
pub fn common_dtype(operands: &[&Array]) -> DType {
    let mut result: Option<DType> = None;
    for strength in [2, 1, 0] {
        let here = operands.iter().filter(|a| rank(a) == strength).map(|a| {
            // A host number has a class but no width: it stands for the default dtype of its class.
            match (strength, a.dtype().class()) {
                (0, DTypeClass::Float) => DType::F32,
                _ => a.dtype(),
            }
        });
        let Some(here) = here.reduce(lattice) else { continue };
        result = Some(match result {
            Some(stronger) if stronger.class() >= here.class() => stronger,
            Some(stronger) => lattice(stronger, here),
            None => here,
        });
    }
    result.expect("an elementwise operation has operands")
}

/// The dtype in which a float function of `dtype` is computed: floats stay, others become
/// `float32`.
pub fn float_dtype(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// `number` as a value of `dtype`: floats rounded to nearest even, integers wrapped, bool by `!=
/// 0`.
pub fn round_to(dtype: DType, number: Number) -> Number {
    match dtype {
        DType::Bool => Number::Int(i64::from(number.is_true())),
        DType::U8 => Number::Int(i64::from(number.to_i64() as u8)),
        DType::I8 => Number::Int(i64::from(number.to_i64() as i8)),
        DType::I16 => Number::Int(i64::from(number.to_i64() as i16)),
        DType::I32 => Number::Int(i64::from(number.to_i64() as i32)),
        DType::I64 => Number::Int(number.to_i64()),
        DType::F16 => Number::Float(round_binary(number.to_f64(), 10, -14, 65504.0)),
        DType::BF16 => Number::Float(round_binary(number.to_f64(), 7, -126, BF16_MAX)),
        DType::F32 => Number::Float(f64::from(number.to_f64() as f32)),
        DType::F64 => Number::Float(number.to_f64()),
    }
}

/// The largest finite bfloat16: (2 - 2^-7) * 2^127.
const BF16_MAX: f64 = 3.3895313892515355e38;

/// Rounds to a binary format with `bits` fraction bits, straight from `f64` so that it rounds once.
fn round_binary(x: f64, bits: i32, exponent_min: i32, largest: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.abs().log2().floor() as i32).max(exponent_min);
    // `log2` may land one off right at a power of two; the unit is then only finer or coarser by a
    // bit where the value is exact anyway, except just below the power, so settle it exactly.
    let exponent = if x.abs() < 2f64.powi(exponent) && exponent > exponent_min {
        exponent - 1
    } else if x.abs() >= 2f64.powi(exponent + 1) {
        exponent + 1
    } else {
        exponent
    };
    let unit = 2f64.powi(exponent - bits);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() > largest { f64::INFINITY.copysign(x) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(dtype: DType, x: f64) -> f64 {
        round_to(dtype, Number::Float(x)).to_f64()
    }

    #[test]
    fn every_half_value_is_kept_and_midpoints_go_to_even() {
        for bits in 0..=u16::MAX {
            for (dtype, value, next) in [
                (
                    DType::F16,
                    half::f16::from_bits(bits).to_f64(),
                    half::f16::from_bits(bits.wrapping_add(1)).to_f64(),
                ),
                (
                    DType::BF16,
                    half::bf16::from_bits(bits).to_f64(),
                    half::bf16::from_bits(bits.wrapping_add(1)).to_f64(),
                ),
            ] {
                if value.is_nan() {
                    assert!(f(dtype, value).is_nan());
                    continue;
                }
                assert_eq!(f(dtype, value), value, "{dtype} {value}");
                if next.is_finite() && value.is_finite() && bits != 0x7fff {
                    let even = if bits % 2 == 0 { value } else { next };
                    assert_eq!(f(dtype, (value + next) / 2.0), even, "{dtype} {value}..{next}");
                }
            }
        }
        assert_eq!(f(DType::F16, 65520.0), f64::INFINITY);
        assert_eq!(f(DType::F16, 65519.9), 65504.0);
        assert_eq!(f(DType::F32, 1.0 + 2f64.powi(-24)), 1.0);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(round_to(DType::U8, Number::Int(300)), Number::Int(44));
        assert_eq!(round_to(DType::U8, Number::Int(-1)), Number::Int(255));
        assert_eq!(round_to(DType::I32, Number::Int(1 << 31)), Number::Int(-(1 << 31)));
        assert_eq!(round_to(DType::Bool, Number::Float(f64::NAN)), Number::Int(1));
    }

    #[test]
    fn weaker_operands_only_lift_the_class() {
        let tensor = |d| Array::zeros(d, &[2]);
        let zero_dim = |d| Array::zeros(d, &[]);
        let common = |a: &Array, b: &Array| common_dtype(&[a, b]);
        assert_eq!(common(&tensor(DType::F16), &zero_dim(DType::F64)), DType::F16);
        assert_eq!(common(&tensor(DType::I64), &zero_dim(DType::F64)), DType::F64);
        assert_eq!(common(&tensor(DType::U8), &Array::host(300i64)), DType::U8);
        assert_eq!(common(&tensor(DType::Bool), &Array::host(1i64)), DType::I64);
        assert_eq!(common(&tensor(DType::I32), &Array::host(1.5)), DType::F32);
        assert_eq!(common(&zero_dim(DType::BF16), &Array::host(1.5)), DType::BF16);
    }
}
