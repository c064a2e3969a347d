//! Philox4x32-10, the counter-based generator, from its paper (Salmon et al., 2011): the runtime's
//! random numbers are a function of seed, offset and logical index, so the oracle can tell each
//! one. Here the offset is 0: a generator that was just seeded.

use std::f64::consts::PI;

use plimsoll_core::DType;

use super::{Array, Number};

/// Ten rounds on a 128-bit counter under a 64-bit key; four 32-bit numbers come out.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let p0 = u64::from(c[0]) * 0xD251_1F53;
        let p1 = u64::from(c[2]) * 0xCD9E_8D57;
        let (high0, low0) = ((p0 >> 32) as u32, p0 as u32);
        let (high1, low1) = ((p1 >> 32) as u32, p1 as u32);
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// The 32-bit words of a seed's stream: word `i` is lane `i % 4` of counter `i / 4`.
fn word(seed: u64, i: usize) -> u32 {
    let counter = (i / 4) as u64;
    let block =
        philox([counter as u32, (counter >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32]);
    block[i % 4]
}

/// Two words as one number, the first one low.
fn wide_word(seed: u64, i: usize) -> u64 {
    u64::from(word(seed, 2 * i + 1)) << 32 | u64::from(word(seed, 2 * i))
}

/// A fraction in [0, 1) for element `i` with `bits` bits.
fn unit(seed: u64, i: usize, bits: u32) -> f64 {
    if bits > 32 {
        (wide_word(seed, i) >> (64 - bits)) as f64 / 2f64.powi(bits as i32)
    } else {
        f64::from(word(seed, i) >> (32 - bits)) / 2f64.powi(bits as i32)
    }
}

/// Uniform numbers from `low` to before `high`, with as many random bits as the dtype holds.
pub fn uniform(dtype: DType, shape: &[usize], low: f64, high: f64, seed: u64) -> Array {
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    numbered(dtype, shape, |i| Number::Float(low + (high - low) * unit(seed, i, bits)))
}

/// Normal numbers by Box and Muller: elements 2j and 2j + 1 share a radius and an angle.
pub fn normal(dtype: DType, shape: &[usize], mean: f64, deviation: f64, seed: u64) -> Array {
    let bits = if dtype == DType::F64 { 53 } else { 24 };
    numbered(dtype, shape, |i| {
        let pair = i / 2 * 2;
        let radius = (-2.0 * (1.0 - unit(seed, pair, bits)).ln()).sqrt();
        let angle = 2.0 * PI * unit(seed, pair + 1, bits);
        let part = if i % 2 == 0 { angle.cos() } else { angle.sin() };
        Number::Float(mean + deviation * radius * part)
    })
}

/// Whole numbers from `low` to before `high`: the high half of a 64-bit draw times the range.
pub fn randint(dtype: DType, shape: &[usize], low: i64, high: i64, seed: u64) -> Array {
    let range = (high - low) as u128;
    numbered(dtype, shape, |i| {
        Number::Int(low + ((u128::from(wide_word(seed, i)) * range) >> 64) as i64)
    })
}

/// What `formula` makes of a uniform number of 53 bits.
pub fn by_formula(dtype: DType, shape: &[usize], seed: u64, formula: impl Fn(f64) -> f64) -> Array {
    numbered(dtype, shape, |i| Number::Float(formula(unit(seed, i, 53))))
}

/// Which of `count` elements dropout with probability `p` keeps.
pub fn kept(count: usize, p: f64, seed: u64) -> Vec<bool> {
    (0..count).map(|i| unit(seed, i, 24) >= p).collect()
}

/// An array whose `i`-th element in row-major order is `f(i)`.
fn numbered(dtype: DType, shape: &[usize], f: impl Fn(usize) -> Number) -> Array {
    let count = shape.iter().product();
    Array::new(dtype, shape, (0..count).map(f).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
