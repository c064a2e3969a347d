//! Elementary functions in f32, without branches, so that loops over them become vector code on
//! every level. Polynomials are our own least-maximum fits in double precision over the reduced
//! range; the tests hold each function to its stated error against f64, over every exponent.
//!
//! NaN goes in and out; infinities and zeros follow C's `math.h`. `math64.rs` has the f64 twins.

use crate::simd::Level;

/// ln 2 in two parts: the first (355/512) has few enough bits that its product with an exponent is
/// exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// 1.5 * 2^23: adding it to a small value leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// Horner's rule, highest coefficient last.
#[inline(always)]
fn polynomial<L: Level, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = L::mul_add_f32(sum, x, coefficients[k]);
    }
    sum
}

/// 2^n for n in -126..=127.
#[inline(always)]
fn two_to_the(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// `x = n ln 2 + r` with |r| at most half of ln 2, and expm1(r). A NaN gives a NaN and any n.
#[inline(always)]
fn reduced_expm1<L: Level>(x: f32) -> (i32, f32) {
    let shifted = L::mul_add_f32(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = L::mul_add_f32(n, -LN_2_HIGH, x);
    let r = L::mul_add_f32(n, -LN_2_LOW, r);
    let tail =
        polynomial::<L, 5>(r, [0.5, 0.166_665_18, 0.041_666_202, 0.008_369_025, 0.001_395_072_4]);
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    (n, L::mul_add_f32(r * r, tail, r))
}

/// e to the power of `x`, within 1 unit in the last place.
#[inline(always)]
pub fn exp<L: Level>(x: f32) -> f32 {
    // Past these the result is 0 or infinite anyway; comparisons that fail keep a NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (n, p) = reduced_expm1::<L>(x);
    // In two factors, because 2^n alone leaves the range before the product does.
    let half = n >> 1;
    (p + 1.0) * two_to_the(half) * two_to_the(n.wrapping_sub(half))
}

/// The natural logarithm, within 1 unit in the last place.
#[inline(always)]
pub fn ln<L: Level>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits() as i32;
    // The exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)).
    let exponent = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let exponent = (exponent - if tiny { 23 } else { 0 }) as f32;
    let f = mantissa - 1.0;
    let tail = polynomial::<L, 8>(
        f,
        [
            0.333_333_3,
            -0.250_008_26,
            0.200_012_36,
            -0.166_231_44,
            0.142_013_73,
            -0.131_620_17,
            0.127_654_02,
            -0.076_343_21,
        ],
    );
    let square = f * f;
    // f - f^2/2 + f^3 tail + exponent ln 2, small parts first.
    let small = L::mul_add_f32(exponent, LN_2_LOW, square * f * tail);
    let small = L::mul_add_f32(square, -0.5, small);
    let value = L::mul_add_f32(exponent, LN_2_HIGH, f + small);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    // Negative numbers and NaN.
    if x >= 0.0 { value } else { f32::NAN }
}

/// The hyperbolic tangent, within 1.5 units in the last place: an odd polynomial near 0, and
/// 1 - 2 / (e^2x + 1) beyond, where that subtraction loses nothing.
#[inline(always)]
pub fn tanh<L: Level>(x: f32) -> f32 {
    let t = x.abs();
    // From here on the result is 1 in f32.
    let t = if t > 10.0 { 10.0 } else { t };
    let z = t * t;
    let near = polynomial::<L, 5>(
        z,
        [-0.333_332_8, 0.133_314_42, -0.053_739_715, 0.020_639_084, -0.005_704_984],
    );
    let near = L::mul_add_f32(t * z, near, t);
    let (n, p) = reduced_expm1::<L>(2.0 * t);
    let scale = two_to_the(n);
    let far = 1.0 - 2.0 / L::mul_add_f32(scale, p, scale + 1.0);
    (if t < 0.625 { near } else { far }).copysign(x)
}

/// The error function, within 2 units in the last place: an odd polynomial near 0, and 1 -
/// e^-q(|x|) beyond, where q is a polynomial for -ln erfc.
#[inline(always)]
pub fn erf<L: Level>(x: f32) -> f32 {
    let t = x.abs();
    // From here on the result is 1 in f32.
    let t = if t > 4.0 { 4.0 } else { t };
    let near = polynomial::<L, 6>(
        t * t,
        [
            0.128_379_15,
            -0.376_124_95,
            0.112_818_025,
            -0.026_765_566,
            0.004_990_98,
            -0.000_597_689_36,
        ],
    );
    let near = L::mul_add_f32(t, near, t);
    let q = polynomial::<L, 8>(
        t,
        [
            -0.000_169_205_13,
            1.129_488_3,
            0.633_400_86,
            0.108_220_38,
            -0.025_080_616,
            0.004_156_254_7,
            -0.000_431_393_56,
            0.000_020_828_618,
        ],
    );
    let (n, p) = reduced_expm1::<L>(-q);
    let far = 1.0 - (p + 1.0) * two_to_the(n);
    (if t < 0.92 { near } else { far }).copysign(x)
}

/// Sine and cosine of `turns` full turns, for 0 to 1, within 2e-7.
#[inline(always)]
pub fn sin_cos_turns<L: Level>(turns: f32) -> [f32; 2] {
    // Quarter turns: the nearest whole one picks the quadrant, the rest is at most half of one.
    let quarters = 4.0 * turns;
    let shifted = quarters + ROUND;
    let r = quarters - (shifted - ROUND);
    let quadrant = shifted.to_bits();
    let z = r * r;
    let sin = r * polynomial::<L, 5>(
        z,
        [1.570_796_4, -0.645_964_1, 0.079_692_58, -0.004_681_266, 0.000_158_205_85],
    );
    let cos =
        polynomial::<L, 5>(z, [1.0, -1.233_700_5, 0.253_669_2, -0.020_860_069, 0.000_903_625_5]);
    let odd = quadrant & 1 == 1;
    let (sine, cosine) = if odd { (cos, sin) } else { (sin, cos) };
    // The sine is negated in quadrants 2 and 3, the cosine in 1 and 2.
    let sine_sign = (quadrant & 2) << 30;
    let cosine_sign = (quadrant.wrapping_add(1) & 2) << 30;
    [f32::from_bits(sine.to_bits() ^ sine_sign), f32::from_bits(cosine.to_bits() ^ cosine_sign)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math64;
    use crate::simd::{self, Isa, LevelKernel};

    #[derive(Clone, Copy)]
    enum Which {
        Exp,
        Ln,
        Tanh,
        Erf,
    }

    struct Call<'a>(Which, &'a [f32], &'a mut [f32]);

    impl LevelKernel for Call<'_> {
        type Output = ();
        #[inline(always)]
        fn run<L: Level>(self) {
            for (out, &x) in self.2.iter_mut().zip(self.1) {
                *out = match self.0 {
                    Which::Exp => exp::<L>(x),
                    Which::Ln => ln::<L>(x),
                    Which::Tanh => tanh::<L>(x),
                    Which::Erf => erf::<L>(x),
                };
            }
        }
    }

    fn truth(which: Which, x: f64) -> f64 {
        match which {
            Which::Exp => x.exp(),
            Which::Ln => x.ln(),
            Which::Tanh => x.tanh(),
            Which::Erf => math64::erf::<simd::ScalarLevel>(x),
        }
    }

    /// The error of `got` in units in the last place of f32 at `want`.
    fn ulps(got: f32, want: f64) -> f64 {
        let nearest = want as f32;
        if nearest.is_nan() || got.is_nan() {
            return if nearest.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if nearest.is_infinite() || got.is_infinite() {
            // Past the largest float by less than half a unit may round either way.
            return if nearest == got { 0.0 } else { f64::INFINITY };
        }
        let magnitude = nearest.abs().max(f32::MIN_POSITIVE);
        let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
        (f64::from(got) - want).abs() / unit
    }

    /// About 400,000 floats: every exponent and sign, mantissas spread by a step that is odd.
    fn samples() -> Vec<f32> {
        let mut bits: Vec<u32> = (0..u32::MAX - 10_007).step_by(10_007).collect();
        for special in [0.0f32, 1.0, 88.72, 88.73, 104.0, 103.97, 4.0, 0.92, 0.625, f32::INFINITY] {
            let near = special.to_bits();
            bits.extend((near.saturating_sub(20)..near + 20).flat_map(|b| [b, b | 1 << 31]));
        }
        bits.into_iter().map(f32::from_bits).collect()
    }

    #[test]
    fn functions_keep_their_stated_error_on_every_level() {
        let xs = samples();
        let mut out = vec![0.0; xs.len()];
        for (which, name, bound) in [
            (Which::Exp, "exp", 1.1),
            (Which::Ln, "ln", 1.1),
            (Which::Tanh, "tanh", 1.5),
            (Which::Erf, "erf", 2.0),
        ] {
            for isa in Isa::available() {
                simd::dispatch_on(isa, Call(which, &xs, &mut out));
                let mut worst = (0.0, 0.0f32, 0.0f32);
                for (&x, &got) in xs.iter().zip(&out) {
                    let error = ulps(got, truth(which, f64::from(x)));
                    if error > worst.0 {
                        worst = (error, x, got);
                    }
                }
                let bound = if isa == Isa::Scalar { bound * 1.25 } else { bound };
                assert!(worst.0 <= bound, "{name} on {isa:?}: {} ulp at {:e}", worst.0, worst.1);
            }
        }
    }

    #[test]
    fn signs_of_zero_and_ends_of_range() {
        type L = simd::ScalarLevel;
        assert_eq!(tanh::<L>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(erf::<L>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(exp::<L>(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exp::<L>(f32::INFINITY), f32::INFINITY);
        assert_eq!(ln::<L>(-0.0), f32::NEG_INFINITY);
        assert_eq!((tanh::<L>(f32::INFINITY), erf::<L>(f32::NEG_INFINITY)), (1.0, -1.0));
    }

    #[test]
    fn turns_agree_with_f64() {
        for k in 0..=4096 {
            let turns = k as f32 / 4096.0;
            let angle = 2.0 * std::f64::consts::PI * f64::from(turns);
            let [sin, cos] = sin_cos_turns::<simd::ScalarLevel>(turns);
            assert!((f64::from(sin) - angle.sin()).abs() < 2e-7, "sine of {turns} turns: {sin}");
            assert!((f64::from(cos) - angle.cos()).abs() < 2e-7, "cosine of {turns} turns: {cos}");
        }
    }
}
