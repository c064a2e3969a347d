//! The path of the long tail: elementwise functions that are not worth loops of their own for every
//! dtype. Operands are loaded into chunks of f32 (float32 and halves), f64 or i64 (integers and
//! bool), the function runs over the chunk, and the result is stored in the output's dtype.
//! Loading, storing and cutting is compiled once for all of them, so that one more function costs
//! two or three small loops ([`run`]), or nothing but itself ([`run_calling`]).
//!
//! Chunks stay in the first-level cache. Operands that lie side by side in the very type that is
//! computed in are read and written where they are.

use std::mem::MaybeUninit;

use plimsoll_core::{DType, Error, Result, Scalar};

use crate::iterate::{self, Tile};
use crate::match_dtype;
use crate::number::Number;
use crate::real::Real;
use crate::simd::{self, Level, LevelKernel};
use crate::{CpuLaunch, Second};

/// Elements of a chunk: four of them in f64 are half of a first-level cache.
const CHUNK: usize = 512;

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
trait Held: Number<Compute = Self> {
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
    drive::<N, i64>(launch, arguments, &|chunk| {
        simd::dispatch_level(Over(f, chunk));
    })
}

/// [`run`] for a function of floats alone.
pub fn run_floats<const N: usize, F: Body<N>>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: F,
) -> Result<()> {
    match crate::input_dtype(launch)? {
        DType::F64 => drive::<N, f64>(launch, arguments, &|chunk| {
            simd::dispatch_level(Over(f, chunk));
        }),
        DType::F32 | DType::F16 | DType::BF16 => drive::<N, f32>(launch, arguments, &|chunk| {
            simd::dispatch_level(Over(f, chunk));
        }),
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
    drive::<N, f64>(launch, arguments, &|chunk| call_each(chunk, f))
}

/// [`run_calling`] in i64, for functions of integers and bools.
pub fn run_calling_whole<const N: usize>(
    launch: &CpuLaunch<'_>,
    arguments: [Argument; N],
    f: &(dyn Fn([i64; N]) -> i64 + Sync),
) -> Result<()> {
    drive::<N, i64>(launch, arguments, &|chunk| call_each(chunk, f))
}

fn call_each<const N: usize, C: Copy>(chunk: Chunk<N, C>, f: &(dyn Fn([C; N]) -> C + Sync)) {
    for i in 0..chunk.len {
        // SAFETY: `i` is within the chunk, whose elements `Job::tile` vouches for.
        unsafe { chunk.write(i, f(chunk.read(i))) };
    }
}

/// Where a chunk's numbers are read and where its results go: in the operands, or in copies of
/// them.
#[derive(Clone, Copy)]
struct Chunk<const N: usize, C> {
    arguments: [*const C; N],
    result: *mut C,
    len: usize,
}

impl<const N: usize, C: Copy> Chunk<N, C> {
    /// # Safety
    /// `i` is below `len`, and each of the addresses has that many elements.
    #[inline(always)]
    unsafe fn read(self, i: usize) -> [C; N] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|argument| unsafe { *self.arguments[argument].add(i) })
    }

    /// # Safety
    /// As for [`Chunk::read`]; the result may be written.
    #[inline(always)]
    unsafe fn write(self, i: usize, value: C) {
        // SAFETY: the caller's promise.
        unsafe { *self.result.add(i) = value }
    }
}

/// A function over a chunk: it fills the whole result.
type OverChunks<'a, const N: usize, C> = dyn Fn(Chunk<N, C>) + Sync + 'a;

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
    // Filled once: tiles are small.
    let mut numbers = [[const { MaybeUninit::uninit() }; CHUNK]; N];
    let filled = CHUNK.min(out.layout().numel());
    let sources: [Source; N] = std::array::from_fn(|i| match arguments[i] {
        Argument::Number(value) => {
            numbers[i][..filled].fill(MaybeUninit::new(C::from_scalar(value)));
            Source::Number
        }
        Argument::Input(index) => {
            let input = launch.inputs.get(index).copied().unwrap_or(out);
            operands[count.min(3)] = input;
            count += 1;
            Source::Elements { dtype: input.dtype(), operand: (count - 1).min(3) }
        }
    });
    let job = Job { over, sources, numbers, out: out.dtype() };
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
enum Source {
    Elements { dtype: DType, operand: usize },
    Number,
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
    sources: [Source; N],
    /// A chunk of each argument that is a number; not filled beyond the output's elements.
    numbers: [[MaybeUninit<C>; CHUNK]; N],
    out: DType,
}

impl<const N: usize, C: Held> Job<'_, N, C> {
    /// One tile, whose operands are the output and the `N` arguments.
    fn tile(&self, tile: &Tile<4>) {
        let mut copies = [[const { MaybeUninit::<C>::uninit() }; CHUNK]; N];
        let mut result = [const { MaybeUninit::<C>::uninit() }; CHUNK];
        for row in 0..tile.rows {
            let pointers = tile.row(row);
            for start in (0..tile.len).step_by(CHUNK) {
                let len = CHUNK.min(tile.len - start);
                let at =
                    |operand: usize| pointers[operand].wrapping_add(start * tile.inner[operand]);
                let to = at(0).cast::<C>();
                let mut in_place = self.out == C::DTYPE && tile.inner[0] == size_of::<C>();
                let arguments = std::array::from_fn(|index| match self.sources[index] {
                    Source::Number => self.numbers[index].as_ptr().cast::<C>(),
                    Source::Elements { dtype, operand } => {
                        let (from, stride) = (at(operand), tile.inner[operand]);
                        if dtype == C::DTYPE && stride == size_of::<C>() {
                            // The compiler's loop takes one element at a time where they overlap.
                            in_place &= to.addr().abs_diff(from.addr()) >= len * size_of::<C>();
                            return from.cast::<C>().cast_const();
                        }
                        load(dtype, from, stride, &mut copies[index][..len]);
                        copies[index].as_ptr().cast::<C>()
                    }
                });
                let results = if in_place { to } else { result.as_mut_ptr().cast::<C>() };
                (self.over)(Chunk { arguments, result: results, len });
                if !in_place {
                    // SAFETY: the function filled as many elements of the chunk.
                    let results = unsafe { std::slice::from_raw_parts(results, len) };
                    store(self.out, to.cast(), tile.inner[0], results);
                }
            }
        }
    }
}

/// The function over a chunk.
struct Over<const N: usize, F, C>(F, Chunk<N, C>);

impl<const N: usize, F: Body<N>, C: Held> LevelKernel for Over<N, F, C> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Over(f, chunk) = self;
        for i in 0..chunk.len {
            // SAFETY: `i` is within the chunk, whose elements `Job::tile` vouches for.
            unsafe { chunk.write(i, C::apply::<N, F, L>(f, chunk.read(i))) };
        }
    }
}

/// Elements of `dtype`, `stride` bytes apart, into a chunk. Neighbours have a loop of their own,
/// which the compiler makes vectors of.
fn load<C: Held>(dtype: DType, from: *const u8, stride: usize, chunk: &mut [MaybeUninit<C>]) {
    match_dtype!(dtype, T => if stride == size_of::<T>() {
        for (i, slot) in chunk.iter_mut().enumerate() {
            // SAFETY: the tile's elements are within its operand (the engine's promise), and of
            // this dtype.
            slot.write(C::from_number(unsafe { *from.cast::<T>().add(i) }));
        }
    } else {
        for (i, slot) in chunk.iter_mut().enumerate() {
            // SAFETY: as above.
            slot.write(C::from_number(unsafe { *from.add(i * stride).cast::<T>() }));
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
