//! The path of the long tail: elementwise functions that are not worth loops of their own for every
//! dtype. Operands are loaded into chunks of f32 (float32 and halves), f64 or i64 (integers and
//! bool), the function runs over the chunk, and the result is stored in the output's dtype.
//! Loading, storing and cutting is compiled once for all of them, so that one more function costs
//! two or three small loops ([`run`]), or nothing but itself ([`run_calling`]).
//!
//! Chunks stay in the first-level cache: what this costs beside a loop of its own is a second pass
//! there.

use plimsoll_core::{DType, Error, Result, Scalar};

use crate::iterate::{self, Tile};
use crate::match_dtype;
use crate::number::Number;
use crate::real::Real;
use crate::simd::{self, Level, LevelKernel};
use crate::{CpuLaunch, Second};

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

impl Argument {
    /// The two arguments of a function whose second operand may be a host number.
    pub fn pair(second: Second) -> [Argument; 2] {
        match second {
            Second::Tensor => [Argument::Input(0), Argument::Input(1)],
            Second::Right(number) => [Argument::Input(0), Argument::Number(number)],
            Second::Left(number) => [Argument::Number(number), Argument::Input(0)],
        }
    }
}

/// A function of `N` numbers, as a type: its loops are compiled for every instruction set.
pub trait Body<const N: usize>: Copy + Sync {
    /// Of floats. Implementations are `#[inline(always)]`.
    fn real<L: Level, R: Real>(self, x: [R; N]) -> R;
    /// Of integers and bools; a function of floats alone ([`run_floats`]) leaves it out.
    fn whole(self, _x: [i64; N]) -> i64 {
        0
    }
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
    if crate::input_dtype(launch)?.is_float() {
        return run_floats(launch, arguments, f);
    }
    drive::<N, i64>(launch, arguments, &|chunks, result| {
        simd::dispatch_level(Over { f, chunks, result });
    })
}

/// [`run`] for a function of floats alone.
pub fn run_floats<const N: usize, F: Body<N>>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: F,
) -> Result<()> {
    match crate::input_dtype(launch)? {
        DType::F64 => drive::<N, f64>(launch, arguments, &|chunks, result| {
            simd::dispatch_level(Over { f, chunks, result });
        }),
        DType::F32 | DType::F16 | DType::BF16 => {
            drive::<N, f32>(launch, arguments, &|chunks, result| {
                simd::dispatch_level(Over { f, chunks, result });
            })
        }
        other => Err(crate::wrong_dtype(launch.operation, other)),
    }
}

/// `out = f(arguments)` in f64 whatever the dtype, by a call for each element. What is computed
/// without vectors anyway (gamma and Bessel functions) goes here, and costs no loop of its own.
pub fn run_calling<const N: usize>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: &(dyn Fn([f64; N]) -> f64 + Sync),
) -> Result<()> {
    drive::<N, f64>(launch, arguments, &|chunks, result| call_each(chunks, result, f))
}

/// [`run_calling`] in i64, for functions of integers and bools.
pub fn run_calling_whole<const N: usize>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: &(dyn Fn([i64; N]) -> i64 + Sync),
) -> Result<()> {
    drive::<N, i64>(launch, arguments, &|chunks, result| call_each(chunks, result, f))
}

fn call_each<const N: usize, C: Copy>(
    chunks: &[[C; CHUNK]; N],
    result: &mut [C],
    f: &(dyn Fn([C; N]) -> C + Sync),
) {
    for (i, slot) in result.iter_mut().enumerate() {
        *slot = f(std::array::from_fn(|argument| chunks[argument][i]));
    }
}

/// A function over chunks: it fills the whole of its second argument.
type OverChunks<'a, const N: usize, C> = dyn Fn(&[[C; CHUNK]; N], &mut [C]) + Sync + 'a;

/// Cuts the work into chunks. It does not know the function's type, so that it is compiled once for
/// each number of arguments and each type that chunks hold.
fn drive<const N: usize, C: Held>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    over: &OverChunks<'_, N, C>,
) -> Result<()> {
    let Some(&out) = launch.outputs.first() else {
        return Err(Error::invalid_argument("the kernel was launched without an output")
            .in_operation(launch.operation));
    };
    // Numbers are no operands: the engine would read memory for them.
    let mut operands = [out; 4];
    let mut count = 1;
    let sources: [Source<C>; N] = std::array::from_fn(|i| match arguments[i] {
        Argument::Number(value) => Source::Number(C::from_scalar(value)),
        Argument::Input(index) => {
            let input = launch.inputs.get(index).copied().unwrap_or(out);
            operands[count.min(3)] = input;
            count += 1;
            Source::Elements { dtype: input.dtype(), operand: (count - 1).min(3) }
        }
    });
    let job = Job { over, sources, out: out.dtype() };
    let [out, a, b, c] = operands;
    match count {
        1 => iterate::run([out], |tile| job.tile(&of_four(tile))),
        2 => iterate::run([out, a], |tile| job.tile(&of_four(tile))),
        3 => iterate::run([out, a, b], |tile| job.tile(&of_four(tile))),
        _ => iterate::run([out, a, b, c], |tile| job.tile(tile)),
    }
    Ok(())
}

/// Where one argument's numbers come from.
#[derive(Clone, Copy)]
enum Source<C> {
    Elements { dtype: DType, operand: usize },
    Number(C),
}

/// A tile of fewer operands as one of four, so that what works on tiles is compiled once.
fn of_four<const M: usize>(tile: &Tile<M>) -> Tile<4> {
    let &Tile { pointers, inner, outer, len, rows } = tile;
    let stride =
        |strides: [usize; M]| std::array::from_fn(|i| strides.get(i).copied().unwrap_or(0));
    Tile {
        pointers: std::array::from_fn(|i| pointers.get(i).copied().unwrap_or(pointers[0])),
        inner: stride(inner),
        outer: stride(outer),
        len,
        rows,
    }
}

struct Job<'a, const N: usize, C> {
    over: &'a OverChunks<'a, N, C>,
    sources: [Source<C>; N],
    out: DType,
}

impl<const N: usize, C: Held> Job<'_, N, C> {
    /// One tile, whose operands are the output and the `N` arguments.
    fn tile(&self, tile: &Tile<4>) {
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
                    let Source::Elements { dtype, operand } = *source else { continue };
                    let stride = tile.inner[operand];
                    let from = pointers[operand].wrapping_add(start * stride);
                    load(dtype, from, stride, &mut chunks[index][..len]);
                }
                (self.over)(&chunks, &mut result[..len]);
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
    result: &'a mut [C],
}

impl<const N: usize, F: Body<N>, C: Held> LevelKernel for Over<'_, N, F, C> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let len = self.result.len().min(CHUNK);
        for i in 0..len {
            let x = std::array::from_fn(|argument| self.chunks[argument][i]);
            self.result[i] = C::apply::<N, F, L>(self.f, x);
        }
    }
}

/// Elements of `dtype`, `stride` bytes apart, into a chunk. Neighbours have a loop of their own,
/// which the compiler makes vectors of.
fn load<C: Held>(dtype: DType, from: *const u8, stride: usize, chunk: &mut [C]) {
    match_dtype!(dtype, T => if stride == size_of::<T>() {
        for (i, slot) in chunk.iter_mut().enumerate() {
            // SAFETY: the tile's elements are within its operand (the engine's promise), and of
            // this dtype.
            *slot = C::from_number(unsafe { *from.cast::<T>().add(i) });
        }
    } else {
        for (i, slot) in chunk.iter_mut().enumerate() {
            // SAFETY: as above.
            *slot = C::from_number(unsafe { *from.add(i * stride).cast::<T>() });
        }
    })
}

/// A chunk into elements of `dtype`, `stride` bytes apart.
fn store<C: Held>(dtype: DType, to: *mut u8, stride: usize, chunk: &[C]) {
    match_dtype!(dtype, T => if stride == size_of::<T>() {
        for (i, value) in chunk.iter().enumerate() {
            // SAFETY: as in `load`; the launch's claim lets it write its output.
            unsafe { *to.cast::<T>().add(i) = <T as Number>::from_number(*value) };
        }
    } else {
        for (i, value) in chunk.iter().enumerate() {
            // SAFETY: as above.
            unsafe { *to.add(i * stride).cast::<T>() = <T as Number>::from_number(*value) };
        }
    })
}
