//! Which vector instructions this machine has, and how one generic loop is compiled for each of
//! them.
//!
//! This is not a vector library. A kernel is a plain loop over slices or pointers, written once in
//! an `#[inline(always)]` body; [`dispatch`] inlines that body into a function compiled for
//! AVX-512, for AVX2 + FMA, or for the baseline, and the compiler vectorises it for each.
//! Hand-written intrinsics live in `gemm/` and `sort/` only.
//!
//! Three rules for such bodies:
//! 1. `run` and everything it calls is `#[inline(always)]` (or a closure that inlines): a function
//!    that is *called* keeps the baseline instructions.
//! 2. Float sums do not vectorise by themselves (the order would change): keep 8 or 16 independent
//!    accumulators in an array.
//! 3. `f32::mul_add` without FMA is a slow library call. Use [`Level::mul_add_f32`] through
//!    [`LevelKernel`], which is a multiply and an add where FMA is missing.

use std::sync::atomic::{AtomicU8, Ordering};

use plimsoll_memory::{Configuration, SimdLevel};

/// Instruction-set levels, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Isa {
    /// The target's baseline (SSE2 on x86-64).
    Scalar = 1,
    /// AVX2, FMA, F16C, BMI.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ, VL on top of AVX2.
    Avx512 = 3,
}

impl Isa {
    /// The levels this machine can run, lowest first. Tests go through all of them.
    pub fn available() -> impl Iterator<Item = Isa> {
        let best = Isa::detected();
        [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().filter(move |&isa| isa <= best)
    }

    /// The best level this machine has, whatever is in force. One load after the first call.
    #[inline]
    pub fn detected() -> Isa {
        match Isa::from_u8(DETECTED.load(Ordering::Relaxed)) {
            Some(isa) => isa,
            None => {
                let isa = Isa::ask_cpu();
                DETECTED.store(isa as u8, Ordering::Relaxed);
                isa
            }
        }
    }

    #[cold]
    fn ask_cpu() -> Isa {
        if !LEVELS_COMPILED {
            return Isa::Scalar;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return Isa::Avx512;
            }
            if avx2 {
                return Isa::Avx2;
            }
        }
        Isa::Scalar
    }

    fn from_u8(value: u8) -> Option<Isa> {
        match value {
            1 => Some(Isa::Scalar),
            2 => Some(Isa::Avx2),
            3 => Some(Isa::Avx512),
            _ => None,
        }
    }
}

impl From<SimdLevel> for Isa {
    fn from(level: SimdLevel) -> Isa {
        match level {
            SimdLevel::Scalar => Isa::Scalar,
            SimdLevel::Avx2 => Isa::Avx2,
            SimdLevel::Avx512 => Isa::Avx512,
        }
    }
}

/// Whether loops are compiled for every level. Not where this crate is a dependency of a debug
/// build: three copies of each kernel would take minutes to compile for tests of other things. The
/// kernels' own tests (feature `testing`) and all optimised builds have every level.
const LEVELS_COMPILED: bool = cfg!(any(test, feature = "testing", not(debug_assertions)));

/// What the machine has; 0 before the first question.
static DETECTED: AtomicU8 = AtomicU8::new(0);

/// The level in force; 0 before the first question.
static IN_FORCE: AtomicU8 = AtomicU8::new(0);

/// The level in force: what the machine has, capped by the configuration's `simd` and by
/// [`set_isa`]. One load after the first call.
#[inline]
pub fn isa() -> Isa {
    match Isa::from_u8(IN_FORCE.load(Ordering::Relaxed)) {
        Some(isa) => isa,
        None => first_isa(),
    }
}

#[cold]
fn first_isa() -> Isa {
    // A wrong configuration is reported where the device is opened, which comes before any kernel.
    let cap = Configuration::process().ok().and_then(Configuration::simd).map(Isa::from);
    let isa = cap.map_or(Isa::detected(), |cap| cap.min(Isa::detected()));
    IN_FORCE.store(isa as u8, Ordering::Relaxed);
    isa
}

/// Puts a level in force for the whole process, capped by what the machine has; returns the
/// previous one. Kernels already running keep theirs.
pub fn set_isa(isa: Isa) -> Isa {
    let previous = self::isa();
    IN_FORCE.store(isa.min(Isa::detected()) as u8, Ordering::Relaxed);
    previous
}

/// A loop to be compiled for every level.
///
/// ```
/// use plimsoll_engine::simd::{self, Kernel};
/// struct Scale<'a>(&'a mut [f32], f32);
/// impl Kernel for Scale<'_> {
///     type Output = ();
///     #[inline(always)]
///     fn run(self) {
///         self.0.iter_mut().for_each(|x| *x *= self.1);
///     }
/// }
/// let mut x = [1.0, 2.0, 3.0];
/// simd::dispatch(Scale(&mut x, 2.0));
/// assert_eq!(x, [2.0, 4.0, 6.0]);
/// ```
pub trait Kernel {
    /// What it returns.
    type Output;
    /// The loop. Implementations are `#[inline(always)]`, or every level is the baseline.
    fn run(self) -> Self::Output;
}

/// Runs `kernel` compiled for the level in force.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    dispatch_level(Plain(kernel))
}

struct Plain<K>(K);

impl<K: Kernel> LevelKernel for Plain<K> {
    type Output = K::Output;
    #[inline(always)]
    fn run<L: Level>(self) -> K::Output {
        self.0.run()
    }
}

/// What a [`LevelKernel`] may ask about the level it is being compiled for.
pub trait Level {
    /// The level.
    const ISA: Isa;

    /// `a * b + c`: fused (one rounding) where the level has FMA, otherwise two roundings.
    #[inline(always)]
    fn mul_add_f32(a: f32, b: f32, c: f32) -> f32 {
        if matches!(Self::ISA, Isa::Scalar) { a * b + c } else { a.mul_add(b, c) }
    }

    /// `a * b + c`: fused (one rounding) where the level has FMA, otherwise two roundings.
    #[inline(always)]
    fn mul_add_f64(a: f64, b: f64, c: f64) -> f64 {
        if matches!(Self::ISA, Isa::Scalar) { a * b + c } else { a.mul_add(b, c) }
    }
}

/// A loop to be compiled for every level that wants to know the level: for fused multiply-adds, or
/// to choose the number of accumulators.
pub trait LevelKernel {
    /// What it returns.
    type Output;
    /// The loop. Implementations are `#[inline(always)]`, or every level is the baseline.
    fn run<L: Level>(self) -> Self::Output;
}

/// [`Level`] for the baseline.
#[derive(Debug)]
pub struct ScalarLevel;
/// [`Level`] for AVX2.
#[derive(Debug)]
pub struct Avx2Level;
/// [`Level`] for AVX-512.
#[derive(Debug)]
pub struct Avx512Level;

impl Level for ScalarLevel {
    const ISA: Isa = Isa::Scalar;
}
impl Level for Avx2Level {
    const ISA: Isa = Isa::Avx2;
}
impl Level for Avx512Level {
    const ISA: Isa = Isa::Avx512;
}

/// Runs `kernel` compiled for the level in force.
#[inline]
pub fn dispatch_level<K: LevelKernel>(kernel: K) -> K::Output {
    dispatch_on(isa(), kernel)
}

/// Runs `kernel` compiled for `isa`, capped by what the machine has. For tests, and for kernels
/// whose data layout was chosen for a level earlier.
#[inline]
pub fn dispatch_on<K: LevelKernel>(isa: Isa, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if LEVELS_COMPILED {
            match isa.min(Isa::detected()) {
                // SAFETY: `Isa::detected` asked the machine, and the level is at most that.
                Isa::Avx512 => return unsafe { on_avx512(kernel) },
                // SAFETY: as above.
                Isa::Avx2 => return unsafe { on_avx2(kernel) },
                Isa::Scalar => {}
            }
        }
        kernel.run::<ScalarLevel>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        kernel.run::<ScalarLevel>()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn on_avx512<K: LevelKernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512Level>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn on_avx2<K: LevelKernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2Level>()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dot<'a>(&'a [f32], &'a [f32]);
    impl LevelKernel for Dot<'_> {
        type Output = (Isa, f32);
        #[inline(always)]
        fn run<L: Level>(self) -> (Isa, f32) {
            let sum = self.0.iter().zip(self.1).fold(0.0, |s, (a, b)| L::mul_add_f32(*a, *b, s));
            (L::ISA, sum)
        }
    }

    #[test]
    fn every_available_level_runs_and_says_which_it_is() {
        for isa in Isa::available() {
            let (ran_on, sum) = dispatch_on(isa, Dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]));
            assert_eq!((ran_on, sum), (isa, 32.0));
        }
    }

    #[test]
    fn a_level_above_the_machine_is_capped() {
        let previous = set_isa(Isa::Avx512);
        assert_eq!(isa(), Isa::detected());
        set_isa(previous);
    }

    #[test]
    fn the_configurations_levels_are_these() {
        let levels = [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512];
        assert_eq!(levels.map(Isa::from), [Isa::Scalar, Isa::Avx2, Isa::Avx512]);
    }
}
