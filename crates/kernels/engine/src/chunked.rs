//! The path of the long tail: elementwise functions that are not worth loops of their own for every
//! dtype. Operands are loaded into chunks of f32 (float32 and halves), f64 or i64 (integers and
//! bool), the function runs over the chunk, and the result is stored in the output's dtype. Loading
//! and storing is compiled once for all of them, so that one more function costs three loops and
//! not eight.
//!
//! Chunks stay in the first-level cache: what this costs beside a loop of its own is a second pass
//! there.

use plimsoll_core::{DType, Error, Result, Scalar};

use crate::iterate::{self, Tile};
use crate::match_dtype;
use crate::number::Number;
use crate::real::Real;
use crate::simd::{self, Level, LevelKernel};
use crate::{CpuLaunch, Operand};

/// Elements of a chunk: three of them in f64 are a fifth of a first-level cache.
const CHUNK: usize = 256;

/// Where an argument of the function comes from.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// An input of the launch.
    Input(usize),
    /// A host number, unrounded by the operands' dtype.
    Number(Scalar),
}

/// A function of `N` numbers.
pub trait Body<const N: usize>: Copy + Sync {
    /// Of floats. Implementations are `#[inline(always)]`.
    fn real<L: Level, R: Real>(self, x: [R; N]) -> R;
    /// Of integers and bools.
    fn whole(self, x: [i64; N]) -> i64;
}

/// What a chunk holds.
trait Held: Number<Compute = Self> + Default {
    fn apply<const N: usize, F: Body<N>, L: Level>(f: F, x: [Self; N]) -> Self;
}

impl Held for f32 {
    #[inline(always)]
    fn apply<const N: usize, F: Body<N>, L: Level>(f: F, x: [f32; N]) -> f32 {
        f.real::<L, f32>(x)
    }
}
impl Held for f64 {
    #[inline(always)]
    fn apply<const N: usize, F: Body<N>, L: Level>(f: F, x: [f64; N]) -> f64 {
        f.real::<L, f64>(x)
    }
}
impl Held for i64 {
    #[inline(always)]
    fn apply<const N: usize, F: Body<N>, L: Level>(f: F, x: [i64; N]) -> i64 {
        f.whole(x)
    }
}

/// `out = f(arguments)`, element by element. The arguments that are inputs have one dtype.
pub fn run<const N: usize, F: Body<N>>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: F,
) -> Result<()> {
    match crate::input_dtype(launch)? {
        DType::F64 => run_in::<N, F, f64>(launch, arguments, f),
        DType::F32 | DType::F16 | DType::BF16 => run_in::<N, F, f32>(launch, arguments, f),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            run_in::<N, F, i64>(launch, arguments, f)
        }
    }
}

fn run_in<const N: usize, F: Body<N>, C: Held>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: F,
) -> Result<()> {
    // An argument that is a number reads the output's place and uses nothing of it.
    let Some(&out) = launch.outputs.first() else {
        return Err(Error::invalid_argument("the kernel was launched without an output")
            .in_operation(launch.operation));
    };
    let operand = |argument: &Argument| match argument {
        Argument::Input(index) => launch.inputs.get(*index).copied().unwrap_or(out),
        Argument::Number(_) => out,
    };
    let sources: [Source<C>; N] = std::array::from_fn(|i| match arguments[i] {
        Argument::Input(_) => Source::Elements(operand(&arguments[i]).dtype()),
        Argument::Number(value) => Source::Number(C::from_scalar(value)),
    });
    let job = Job { f, sources, out: out.dtype() };
    match N {
        1 => iterate::run([out, operand(&arguments[0])], |tile| job.tile(tile)),
        2 => iterate::run([out, operand(&arguments[0]), operand(&arguments[1])], |tile| {
            job.tile(tile);
        }),
        _ => {
            let operands: [Operand<'_>; 4] =
                [out, operand(&arguments[0]), operand(&arguments[1]), operand(&arguments[2])];
            iterate::run(operands, |tile| job.tile(tile));
        }
    }
    Ok(())
}

/// Where one argument's numbers come from.
#[derive(Clone, Copy)]
enum Source<C> {
    Elements(DType),
    Number(C),
}

#[derive(Clone, Copy)]
struct Job<const N: usize, F, C> {
    f: F,
    sources: [Source<C>; N],
    out: DType,
}

impl<const N: usize, F: Body<N>, C: Held> Job<N, F, C> {
    /// One tile, whose operands are the output and the `N` arguments.
    fn tile<const M: usize>(&self, tile: &Tile<M>) {
        debug_assert_eq!(M, N + 1, "an output and the arguments");
        let mut chunks = [[C::default(); CHUNK]; N];
        let mut result = [C::default(); CHUNK];
        for (chunk, source) in chunks.iter_mut().zip(&self.sources) {
            if let Source::Number(number) = source {
                chunk.fill(*number);
            }
        }
        for row in 0..tile.rows {
            let pointers = tile.row(row);
            for start in (0..tile.len).step_by(CHUNK) {
                let len = CHUNK.min(tile.len - start);
                for (index, source) in self.sources.iter().enumerate() {
                    let Source::Elements(dtype) = *source else { continue };
                    let stride = tile.inner[index + 1];
                    let from = pointers[index + 1].wrapping_add(start * stride);
                    load(dtype, from, stride, &mut chunks[index][..len]);
                }
                simd::dispatch_level(Over { f: self.f, chunks: &chunks, result: &mut result, len });
                let stride = tile.inner[0];
                store(self.out, pointers[0].wrapping_add(start * stride), stride, &result[..len]);
            }
        }
    }
}

/// The function over a chunk.
struct Over<'a, const N: usize, F, C> {
    f: F,
    chunks: &'a [[C; CHUNK]; N],
    result: &'a mut [C; CHUNK],
    len: usize,
}

impl<const N: usize, F: Body<N>, C: Held> LevelKernel for Over<'_, N, F, C> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for i in 0..self.len {
            let x = std::array::from_fn(|argument| self.chunks[argument][i]);
            self.result[i] = C::apply::<N, F, L>(self.f, x);
        }
    }
}

/// Elements of `dtype`, `stride` bytes apart, into a chunk.
fn load<C: Held>(dtype: DType, from: *const u8, stride: usize, chunk: &mut [C]) {
    match_dtype!(dtype, T => for (i, slot) in chunk.iter_mut().enumerate() {
        // SAFETY: the tile's elements are within its operand (the engine's promise), and of this
        // dtype.
        let element = unsafe { *from.add(i * stride).cast::<T>() };
        *slot = C::from_number(element);
    })
}

/// A chunk into elements of `dtype`, `stride` bytes apart.
fn store<C: Held>(dtype: DType, to: *mut u8, stride: usize, chunk: &[C]) {
    match_dtype!(dtype, T => for (i, value) in chunk.iter().enumerate() {
        // SAFETY: as in `load`; the launch's claim lets it write its output.
        unsafe { *to.add(i * stride).cast::<T>() = <T as Number>::from_number(*value) };
    })
}
