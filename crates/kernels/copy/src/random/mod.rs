//! Random numbers: uniform, normal, whole, and dropout. Element i (its place in row-major order,
//! whatever the layout) takes its words from the generator at counter `offset + i * draws / 4`, so
//! the same seed and offset give the same tensor on any number of threads and any device.
//! `philox.rs` is the generator.
//!
//! Uniforms and whole numbers are bit-equal everywhere; normals agree within 2 units in the last
//! place.

mod formula;
mod philox;

use plimsoll_core::{DType, Result};

pub use formula::{Formula, by_formula};
use philox::words;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::generate::{CHUNK, Generate, chunks, generate, load, store};
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::match_float;
use plimsoll_engine::match_number;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{Element, Truth};

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Floats in a half-open range.
    Uniform,
    /// Floats around a mean.
    Normal,
    /// Whole numbers in a half-open range.
    Integer,
    /// Whether an element is dropped.
    Dropout,
    /// What a formula makes of one uniform number.
    Formula,
}

/// 32-bit words that each element takes: a constant, so that the generator knows how far to
/// advance. A tensor of n elements moves the offset on by `(n * draws).div_ceil(4)` counters.
pub const fn draws_per_element(dtype: DType, distribution: Distribution) -> usize {
    match (distribution, dtype) {
        (Distribution::Integer | Distribution::Formula, _) => 2,
        (Distribution::Uniform | Distribution::Normal, DType::F64) => 2,
        _ => 1,
    }
}

/// Where a launch's numbers come from.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The generator's key.
    pub seed: u64,
    /// The first counter.
    pub offset: u64,
}

impl Stream {
    /// The words for elements from logical index `first` on, `draws` each.
    #[inline(always)]
    fn fill(self, first: usize, draws: usize, out: &mut [u32]) {
        // `first` is a multiple of the chunk, so of 4.
        words(self.seed, self.offset.wrapping_add((first / 4 * draws) as u64), out);
    }
}

/// A uniform number in [0, 1) from the words of one element.
trait Unit: Float {
    /// Words it takes.
    const DRAWS: usize;
    /// As many bits as the type holds exactly, so that 1 is never reached by rounding.
    fn unit(words: &[u32]) -> Self::Wide;
}

macro_rules! unit {
    ($type:ty, $bits:expr) => {
        impl Unit for $type {
            const DRAWS: usize = 1;
            #[inline(always)]
            fn unit(words: &[u32]) -> f32 {
                (words[0] >> (32 - $bits)) as i32 as f32 * (1.0 / (1u32 << $bits) as f32)
            }
        }
    };
}

unit!(f32, 24);
unit!(half::f16, 11);
unit!(half::bf16, 8);

impl Unit for f64 {
    const DRAWS: usize = 2;
    #[inline(always)]
    fn unit(words: &[u32]) -> f64 {
        let bits = u64::from(words[1]) << 32 | u64::from(words[0]);
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

struct Uniform {
    stream: Stream,
    low: f64,
    high: f64,
}

impl<T: Unit> Generate<T> for Uniform {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        let mut drawn = [0; 2 * CHUNK];
        let drawn = &mut drawn[..(out.len() * T::DRAWS).next_multiple_of(4)];
        self.stream.fill(first, T::DRAWS, drawn);
        let (low, width) = (T::Wide::of(self.low), T::Wide::of(self.high - self.low));
        let high = T::Wide::of(self.high);
        for (out, words) in out.iter_mut().zip(drawn.chunks_exact(T::DRAWS)) {
            // Not fused: every level and device must give the same bits.
            let value = T::narrow(T::unit(words) * width + low);
            // What is rounded up to the end goes to the start, which gets half of its share.
            *out = if value.widen() >= high { T::narrow(low) } else { value };
        }
    }
}

/// Every element uniform in [low, high).
pub fn uniform(launch: &CpuLaunch<'_>, low: f64, high: f64, stream: Stream) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    match_float!(launch, out.dtype(), T => {
        generate::<T, _>(out, &Uniform { stream, low, high });
        Ok(())
    })
}

struct Normal {
    stream: Stream,
    mean: f64,
    deviation: f64,
}

/// Box and Muller's pair: elements 2j and 2j + 1 share a radius and an angle.
trait Pairs: Unit {
    fn pair<L: Level>(a: Self::Wide, b: Self::Wide) -> [Self::Wide; 2];
}

impl Pairs for f64 {
    #[inline(always)]
    fn pair<L: Level>(a: f64, b: f64) -> [f64; 2] {
        let radius = (-2.0 * (1.0 - a).ln()).sqrt();
        let (sin, cos) = (2.0 * std::f64::consts::PI * b).sin_cos();
        [radius * cos, radius * sin]
    }
}

macro_rules! pairs {
    ($type:ty) => {
        impl Pairs for $type {
            #[inline(always)]
            fn pair<L: Level>(a: f32, b: f32) -> [f32; 2] {
                let radius = (-2.0 * plimsoll_engine::math32::ln::<L>(1.0 - a)).sqrt();
                let [sin, cos] = plimsoll_engine::math32::sin_cos_turns::<L>(b);
                [radius * cos, radius * sin]
            }
        }
    };
}

pairs!(f32);
pairs!(half::f16);
pairs!(half::bf16);

impl<T: Pairs> Generate<T> for Normal {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        let mut drawn = [0; 2 * CHUNK];
        let drawn = &mut drawn[..(out.len() * T::DRAWS).next_multiple_of(4)];
        self.stream.fill(first, T::DRAWS, drawn);
        let (mean, deviation) = (T::Wide::of(self.mean), T::Wide::of(self.deviation));
        let mut values = [T::Wide::ZERO; CHUNK];
        let half = CHUNK / 2;
        let (mut a, mut b) = ([T::Wide::ZERO; CHUNK / 2], [T::Wide::ZERO; CHUNK / 2]);
        for (j, words) in drawn.chunks_exact(2 * T::DRAWS).enumerate().take(half) {
            // Half types draw with all of f32's bits: their results are rounded anyway.
            a[j] = full_unit::<T>(&words[..T::DRAWS]);
            b[j] = full_unit::<T>(&words[T::DRAWS..]);
        }
        for j in 0..out.len().div_ceil(2) {
            let pair = T::pair::<L>(a[j], b[j]);
            values[2 * j] = pair[0];
            values[2 * j + 1] = pair[1];
        }
        for (out, &value) in out.iter_mut().zip(&values) {
            *out = T::narrow(value.mul_add::<L>(deviation, mean));
        }
    }
}

#[inline(always)]
fn full_unit<T: Unit>(words: &[u32]) -> T::Wide {
    if T::DRAWS == 1 {
        T::Wide::of(f64::from((words[0] >> 8) as i32 as f32 * (1.0 / 16_777_216.0)))
    } else {
        T::unit(words)
    }
}

/// Every element from the normal distribution of this mean and standard deviation.
pub fn normal(launch: &CpuLaunch<'_>, mean: f64, deviation: f64, stream: Stream) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    match_float!(launch, out.dtype(), T => {
        generate::<T, _>(out, &Normal { stream, mean, deviation });
        Ok(())
    })
}

struct Integers {
    stream: Stream,
    low: i64,
    range: u64,
}

impl<T: Element> Generate<T> for Integers {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        let mut drawn = [0; 2 * CHUNK];
        let drawn = &mut drawn[..(out.len() * 2).next_multiple_of(4)];
        self.stream.fill(first, 2, drawn);
        for (out, words) in out.iter_mut().zip(drawn.chunks_exact(2)) {
            let bits = u64::from(words[1]) << 32 | u64::from(words[0]);
            // The high half of the product: no division, and no draw is ever thrown away.
            let above = ((u128::from(bits) * u128::from(self.range)) >> 64) as i64;
            *out = T::from_i64(self.low.wrapping_add(above));
        }
    }
}

/// Every element a whole number in [low, high); `low` itself if the range is empty.
pub fn randint(launch: &CpuLaunch<'_>, low: i64, high: i64, stream: Stream) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    let range = if high > low { high.wrapping_sub(low) as u64 } else { 0 };
    match_number!(launch, out.dtype(), T => {
        generate::<T, _>(out, &Integers { stream, low, range });
        Ok(())
    })
}

struct Drop<'a, T> {
    stream: Stream,
    first: usize,
    /// Words from this on keep their element.
    threshold: u64,
    scale: f64,
    values: &'a mut [T],
    mask: &'a mut [Truth],
}

impl<T: Float> LevelKernel for Drop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let mut drawn = [0; CHUNK];
        let drawn = &mut drawn[..self.values.len().next_multiple_of(4)];
        self.stream.fill(self.first, 1, drawn);
        let scale = T::Wide::of(self.scale);
        for ((value, mask), &word) in self.values.iter_mut().zip(self.mask).zip(&*drawn) {
            let keep = u64::from(word >> 8) >= self.threshold;
            let kept = value.widen() * scale;
            *value = T::narrow(if keep { kept } else { T::Wide::ZERO });
            *mask = Truth::new(keep);
        }
    }
}

/// `[x]` -> [x / (1 - p) where kept, else 0] and, if there is a second output, the mask (bool). An
/// element is kept with probability 1 - p. The same stream on a gradient is the derivative.
pub fn dropout(launch: &CpuLaunch<'_>, p: f64, stream: Stream) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    let mask_out = launch.outputs.get(1);
    if let Some(mask) = mask_out {
        check::<Truth>(launch, mask)?;
    }
    let (threshold, scale) = ((p * 16_777_216.0).ceil() as u64, 1.0 / (1.0 - p));
    match_float!(launch, input.dtype(), T => {
        check::<T>(launch, &out)?;
        chunks(out.layout().numel(), |first, len| {
            let (mut values, mut mask) = ([T::ZERO; CHUNK], [Truth::new(false); CHUNK]);
            let (values, mask) = (&mut values[..len], &mut mask[..len]);
            // SAFETY: logical indices of operands of one shape; chunks are disjoint.
            unsafe {
                load(input, first, values);
                simd::dispatch_level(Drop { stream, first, threshold, scale, values: &mut *values, mask: &mut *mask });
                store(out, first, values);
                if let Some(mask_out) = mask_out {
                    store(*mask_out, first, mask);
                }
            }
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
