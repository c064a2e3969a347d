//! Distributions that are a formula of one uniform number: computed in f64 from 53 random bits,
//! then rounded to the output's dtype, so that one loop serves all of them.

use plimsoll_core::Result;

use super::Stream;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::Element;
use plimsoll_engine::generate::{CHUNK, Generate, generate};
use plimsoll_engine::map::operands;
use plimsoll_engine::match_dtype;
use plimsoll_engine::simd::Level;

/// What is made of a uniform number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Formula {
    /// Waiting times, of this many events in a unit of time.
    Exponential(f64),
    /// Cauchy's, around a median.
    Cauchy {
        /// Half of all numbers are below.
        median: f64,
        /// Half of all numbers are nearer than this.
        sigma: f64,
    },
    /// How many trials until one succeeds, with this probability.
    Geometric(f64),
    /// 1 with this probability, else 0.
    Bernoulli(f64),
}

impl Formula {
    /// The number for `u` in [0, 1).
    fn of(self, u: f64) -> f64 {
        match self {
            Formula::Exponential(lambda) => -(-u).ln_1p() / lambda,
            Formula::Cauchy { median, sigma } => {
                // The middle of the step that `u` stands for: the ends have no tangent.
                let middle = u + 1.0 / (1u64 << 54) as f64;
                median + sigma * (std::f64::consts::PI * (middle - 0.5)).tan()
            }
            Formula::Geometric(p) if p >= 1.0 => 1.0,
            Formula::Geometric(p) => ((-u).ln_1p() / (-p).ln_1p()).ceil().max(1.0),
            Formula::Bernoulli(p) => f64::from(u < p),
        }
    }
}

struct ByFormula {
    stream: Stream,
    formula: Formula,
}

impl<T: Element> Generate<T> for ByFormula {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        let mut drawn = [0; 2 * CHUNK];
        let drawn = &mut drawn[..(out.len() * 2).next_multiple_of(4)];
        self.stream.fill(first, 2, drawn);
        for (out, words) in out.iter_mut().zip(drawn.chunks_exact(2)) {
            let bits = u64::from(words[1]) << 32 | u64::from(words[0]);
            let u = (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
            *out = T::from_f64(self.formula.of(u));
        }
    }
}

/// Every element by a formula of a uniform number of its own.
pub fn by_formula(launch: &CpuLaunch<'_>, formula: Formula, stream: Stream) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    match_dtype!(out.dtype(), T => generate::<T, _>(out, &ByFormula { stream, formula }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_at_the_quantiles_that_are_known() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(Formula::Exponential(2.0).of(0.5), 0.5 * 2f64.ln());
        assert_eq!(Formula::Exponential(1.0).of(0.0), 0.0);
        near(Formula::Cauchy { median: 1.0, sigma: 2.0 }.of(0.5), 1.0);
        near(Formula::Cauchy { median: 1.0, sigma: 2.0 }.of(0.75), 3.0);
        assert!(Formula::Cauchy { median: 0.0, sigma: 1.0 }.of(0.0).is_finite());
        // Three in four trials need at most two.
        assert_eq!(Formula::Geometric(0.5).of(0.74), 2.0);
        assert_eq!(Formula::Geometric(0.5).of(0.76), 3.0);
        assert_eq!((Formula::Geometric(0.5).of(0.0), Formula::Geometric(1.0).of(0.9)), (1.0, 1.0));
        assert_eq!((Formula::Bernoulli(0.3).of(0.29), Formula::Bernoulli(0.3).of(0.3)), (1.0, 0.0));
    }
}
