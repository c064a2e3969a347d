//! Softmax and its logarithm along one dimension, and their derivatives. Lines that are contiguous
//! are read and written within the cache, one after another; otherwise neighbouring lines go side
//! by side, down a block of columns.
//!
//! In-place use is fine. Sums run in fixed lanes, so results do not depend on the number of
//! threads. Large outputs are written around the caches (`nontemporal.rs`).

use plimsoll_core::Result;

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{
    Lines, SLICE, fold, read_run, slices, sum, write_run, write_slice,
};
use plimsoll_engine::input_dtype;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::match_float;
use plimsoll_engine::nontemporal;
use plimsoll_engine::parallel;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};

/// Lines side by side in a block of columns.
const COLUMNS: usize = 64;

/// `[x]` -> exp(x) / sum(exp(x)) along `dim`.
pub fn softmax(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => run::<T, Forward<false>, 2>(launch, dim))
}

/// `[x]` -> x - log(sum(exp(x))) along `dim`.
pub fn log_softmax(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => run::<T, Forward<true>, 2>(launch, dim))
}

/// [grad, softmax(x)] -> the gradient of x.
pub fn softmax_backward(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => run::<T, Backward<false>, 3>(launch, dim))
}

/// [grad, log_softmax(x)] -> the gradient of x.
pub fn log_softmax_backward(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => run::<T, Backward<true>, 3>(launch, dim))
}

/// What is done to a line, or to a block of lines side by side.
trait Normalize<const N: usize> {
    /// One contiguous line of `len` elements, by way of `buffer`, streamed if `streamed`.
    ///
    /// # Safety
    /// The pointers (output first) must be good for `len` elements of `T`.
    unsafe fn line<L: Level, T: Float>(
        pointers: [*mut T; N],
        len: usize,
        buffer: &mut [T::Wide; SLICE],
        streamed: bool,
    );

    /// `columns` lines (at most [`COLUMNS`]), `across` bytes apart, of `len` elements `down` bytes
    /// apart.
    ///
    /// # Safety
    /// The pointers must be good for those elements.
    unsafe fn columns<L: Level, T: Float>(
        pointers: [*mut T; N],
        across: [usize; N],
        columns: usize,
        down: [usize; N],
        len: usize,
    );
}

struct Forward<const LOG: bool>;
struct Backward<const LOG: bool>;

fn run<T: Float, K: Normalize<N>, const N: usize>(
    launch: &CpuLaunch<'_>,
    dim: usize,
) -> Result<()> {
    let all = operands::<N>(launch)?;
    for operand in &all {
        check::<T>(launch, operand)?;
    }
    let lines = Lines::new(launch, &all, dim)?;
    if lines.len == 0 || lines.count == 0 {
        return Ok(());
    }
    if lines.len == 1 || lines.strides == [size_of::<T>(); N] {
        let streamed = nontemporal::is_streamed(&all);
        parallel::split(lines.count, (GRAIN / lines.len).max(1), |range| {
            let kernel = std::marker::PhantomData;
            simd::dispatch_level(LineRange::<T, K, N> { lines: &lines, range, streamed, kernel });
        });
        return Ok(());
    }
    let (width, across) = lines.across();
    let blocks = width.div_ceil(COLUMNS);
    let units = lines.count / width * blocks;
    parallel::split(units, (GRAIN / (lines.len * COLUMNS)).max(1), |range| {
        for unit in range {
            let first = unit % blocks * COLUMNS;
            simd::dispatch_level(Block::<T, K, N> {
                pointers: lines.group(unit / blocks, first).map(|p| p.cast()),
                across,
                columns: COLUMNS.min(width - first),
                lines: &lines,
                kernel: std::marker::PhantomData,
            });
        }
    });
    Ok(())
}

struct LineRange<'a, T, K, const N: usize> {
    lines: &'a Lines<N>,
    range: std::ops::Range<usize>,
    streamed: bool,
    kernel: std::marker::PhantomData<(T, K)>,
}

impl<T: Float, K: Normalize<N>, const N: usize> LevelKernel for LineRange<'_, T, K, N> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let LineRange { lines, range, streamed, .. } = self;
        let mut buffer = [T::Wide::ZERO; SLICE];
        for index in range {
            let line = lines.line(index).map(|p| p.cast());
            // SAFETY: a line of the operands, which `run` checked to hold `T` and to be contiguous.
            unsafe { K::line::<L, T>(line, lines.len, &mut buffer, streamed) }
        }
        if streamed {
            nontemporal::fence();
        }
    }
}

struct Block<'a, T, K, const N: usize> {
    pointers: [*mut T; N],
    across: [usize; N],
    columns: usize,
    lines: &'a Lines<N>,
    kernel: std::marker::PhantomData<K>,
}

impl<T: Float, K: Normalize<N>, const N: usize> LevelKernel for Block<'_, T, K, N> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Block { pointers, across, columns, lines, .. } = self;
        // SAFETY: `columns` neighbouring lines of the operands, which `run` checked to hold `T`.
        unsafe { K::columns::<L, T>(pointers, across, columns, lines.strides, lines.len) }
    }
}

#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    // A NaN is left for the exponentials to carry.
    if b > a { b } else { a }
}

/// exp(x - top) of neighbouring elements.
///
/// # Safety
/// As many elements as there are values must be readable.
#[inline(always)]
unsafe fn exponentials<L: Level, T: Float>(x: *const T, top: T::Wide, values: &mut [T::Wide]) {
    for (i, value) in values.iter_mut().enumerate() {
        // SAFETY: below the number of values.
        *value = (unsafe { *x.add(i) }.widen() - top).exp::<L>();
    }
}

impl<const LOG: bool> Normalize<2> for Forward<LOG> {
    #[inline(always)]
    unsafe fn line<L: Level, T: Float>(
        [out, x]: [*mut T; 2],
        len: usize,
        buffer: &mut [T::Wide; SLICE],
        streamed: bool,
    ) {
        // SAFETY: the caller vouches for the line.
        let top = unsafe { fold(x, len, -T::Wide::INFINITY, larger, larger) };
        let mut total = 0.0;
        // SAFETY: slices are inside the line, for which the caller vouches.
        slices(len, |at, count| unsafe {
            exponentials::<L, T>(x.add(at), top, &mut buffer[..count]);
            total += sum(&buffer[..count]).to_f64();
        });
        let (scale, shift) = (T::Wide::of(1.0 / total), T::Wide::of(total).ln::<L>());
        // SAFETY: as above. In a line of one slice the exponentials are still in the buffer.
        slices(len, |at, count| unsafe {
            let values = &mut buffer[..count];
            if LOG {
                read_run(x.add(at), size_of::<T>(), values);
                values.iter_mut().for_each(|value| *value = *value - top - shift);
            } else {
                if len > SLICE {
                    exponentials::<L, T>(x.add(at), top, values);
                }
                values.iter_mut().for_each(|value| *value = *value * scale);
            }
            write_slice(out.add(at), values, streamed);
        });
    }

    #[inline(always)]
    unsafe fn columns<L: Level, T: Float>(
        [out, x]: [*mut T; 2],
        across: [usize; 2],
        columns: usize,
        down: [usize; 2],
        len: usize,
    ) {
        let zero = T::Wide::ZERO;
        let (mut run, mut sums) = ([zero; COLUMNS], [zero; COLUMNS]);
        let mut tops = [-T::Wide::INFINITY; COLUMNS];
        // SAFETY: each row of the block is inside the operands; the caller vouches for them.
        unsafe {
            for row in 0..len {
                read_run(x.byte_add(row * down[1]), across[1], &mut run[..columns]);
                for (top, &value) in tops.iter_mut().zip(&run[..columns]) {
                    *top = larger(*top, value);
                }
            }
            for row in 0..len {
                read_run(x.byte_add(row * down[1]), across[1], &mut run[..columns]);
                for ((sum, &value), &top) in sums.iter_mut().zip(&run[..columns]).zip(&tops) {
                    *sum = *sum + (value - top).exp::<L>();
                }
            }
            for sum in &mut sums[..columns] {
                *sum = if LOG { sum.ln::<L>() } else { T::Wide::ONE / *sum };
            }
            for row in 0..len {
                read_run(x.byte_add(row * down[1]), across[1], &mut run[..columns]);
                for ((value, &top), &sum) in run[..columns].iter_mut().zip(&tops).zip(&sums) {
                    let shifted = *value - top;
                    *value = if LOG { shifted - sum } else { shifted.exp::<L>() * sum };
                }
                write_run(out.byte_add(row * down[0]), across[0], &run[..columns]);
            }
        }
    }
}

/// What is summed: g y, or for the logarithm g.
#[inline(always)]
fn term<R: Real, const LOG: bool>(grad: R, y: R) -> R {
    if LOG { grad } else { grad * y }
}

/// The gradient of x: y (g - sum), or for the logarithm g - exp(y) sum.
#[inline(always)]
fn gradient<L: Level, R: Real, const LOG: bool>(grad: R, y: R, sum: R) -> R {
    if LOG { grad - y.exp::<L>() * sum } else { y * (grad - sum) }
}

impl<const LOG: bool> Normalize<3> for Backward<LOG> {
    #[inline(always)]
    unsafe fn line<L: Level, T: Float>(
        [out, grad, y]: [*mut T; 3],
        len: usize,
        buffer: &mut [T::Wide; SLICE],
        streamed: bool,
    ) {
        let mut total = 0.0;
        // SAFETY: slices are inside the line, for which the caller vouches.
        slices(len, |at, count| unsafe {
            for (i, value) in buffer[..count].iter_mut().enumerate() {
                let (g, y) = (*grad.add(at + i), *y.add(at + i));
                *value = term::<_, LOG>(g.widen(), y.widen());
            }
            total += sum(&buffer[..count]).to_f64();
        });
        let total = T::Wide::of(total);
        // SAFETY: as above.
        slices(len, |at, count| unsafe {
            for (i, value) in buffer[..count].iter_mut().enumerate() {
                let (g, y) = (*grad.add(at + i), *y.add(at + i));
                *value = gradient::<L, _, LOG>(g.widen(), y.widen(), total);
            }
            write_slice(out.add(at), &buffer[..count], streamed);
        });
    }

    #[inline(always)]
    unsafe fn columns<L: Level, T: Float>(
        [out, grad, y]: [*mut T; 3],
        across: [usize; 3],
        columns: usize,
        down: [usize; 3],
        len: usize,
    ) {
        let zero = T::Wide::ZERO;
        let (mut g, mut v, mut sums) = ([zero; COLUMNS], [zero; COLUMNS], [zero; COLUMNS]);
        // SAFETY: each row of the block is inside the operands; the caller vouches for them.
        unsafe {
            for row in 0..len {
                read_run(grad.byte_add(row * down[1]), across[1], &mut g[..columns]);
                read_run(y.byte_add(row * down[2]), across[2], &mut v[..columns]);
                for ((sum, &g), &y) in sums.iter_mut().zip(&g[..columns]).zip(&v) {
                    *sum = *sum + term::<_, LOG>(g, y);
                }
            }
            for row in 0..len {
                read_run(grad.byte_add(row * down[1]), across[1], &mut g[..columns]);
                read_run(y.byte_add(row * down[2]), across[2], &mut v[..columns]);
                for ((g, &y), &sum) in g[..columns].iter_mut().zip(&v).zip(&sums) {
                    *g = gradient::<L, _, LOG>(*g, y, sum);
                }
                write_run(out.byte_add(row * down[0]), across[0], &g[..columns]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::testing::{
        FLOATS, Held, Lot, assert_close, launch_all, launch_in_place, rounded, shapes, tolerance,
    };

    /// Applies `f` to every line along `dim` of values of `shape` in logical order.
    fn along(
        shape: &[usize],
        dim: usize,
        inputs: &[Vec<f64>],
        f: impl Fn(&[Vec<f64>]) -> Vec<f64>,
    ) -> Vec<f64> {
        let len = shape.get(dim).copied().unwrap_or(1);
        let inner: usize = shape.iter().skip(dim + 1).product();
        let mut out = vec![0.0; inputs[0].len()];
        let count = out.len().checked_div(len).unwrap_or(0);
        for line in 0..count {
            let start = line / inner * inner * len + line % inner;
            let lines: Vec<Vec<f64>> = inputs
                .iter()
                .map(|input| (0..len).map(|i| input[start + i * inner]).collect())
                .collect();
            for (i, value) in f(&lines).into_iter().enumerate() {
                out[start + i * inner] = value;
            }
        }
        out
    }

    fn log_softmax_of(line: &[f64]) -> Vec<f64> {
        let top = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = line.iter().map(|x| (x - top).exp()).sum();
        line.iter().map(|x| x - top - sum.ln()).collect()
    }

    #[test]
    fn forward_agrees_with_f64_along_every_dimension() {
        let mut lot = Lot(31);
        for dtype in FLOATS {
            for shape in shapes() {
                for dim in 0..shape.len().max(1) {
                    let x = Held::random(&mut lot, dtype, &shape, false);
                    let logs = along(&shape, dim, &[x.values()], |l| log_softmax_of(&l[0]));
                    let plain: Vec<f64> = logs.iter().map(|x| x.exp()).collect();
                    let mut out = [Held::output(&mut lot, dtype, &shape)];
                    let what = format!("softmax of {:?} along {dim}", x.meta);
                    launch_all(
                        &[&x],
                        &mut out,
                        0,
                        |l| softmax(l, dim),
                        |out| {
                            let relative = 8.0 * tolerance(dtype);
                            assert_close(&out[0].values(), &plain, relative, 1e-7, &what);
                        },
                    );
                    launch_all(
                        &[&x],
                        &mut out,
                        0,
                        |l| log_softmax(l, dim),
                        |out| {
                            assert_close(&out[0].values(), &logs, tolerance(dtype), 4e-6, &what);
                        },
                    );
                    let mut target = Held::of(dtype, &shape, &x.values());
                    launch_in_place(&mut target, &[], |l| softmax(l, dim)).unwrap();
                    assert_close(&target.values(), &plain, 8.0 * tolerance(dtype), 1e-7, &what);
                }
            }
        }
    }

    #[test]
    fn backward_agrees_with_f64_along_every_dimension() {
        let mut lot = Lot(32);
        for dtype in FLOATS {
            for shape in shapes() {
                for dim in 0..shape.len().max(1) {
                    let grad = Held::random(&mut lot, dtype, &shape, false);
                    let y = Held::random(&mut lot, dtype, &shape, false);
                    let mut out = [Held::output(&mut lot, dtype, &shape)];
                    let both = [grad.values(), y.values()];
                    let want = along(&shape, dim, &both, |l| {
                        let sum: f64 = l[0].iter().zip(&l[1]).map(|(g, y)| g * y).sum();
                        l[0].iter().zip(&l[1]).map(|(g, y)| y * (g - sum)).collect()
                    });
                    let scale = want.iter().fold(1.0f64, |a, b| a.max(b.abs()));
                    let want: Vec<f64> = want.iter().map(|&v| rounded(dtype, v)).collect();
                    launch_all(
                        &[&grad, &y],
                        &mut out,
                        0,
                        |l| softmax_backward(l, dim),
                        |out| {
                            let error = 1e-6 * scale;
                            assert_close(
                                &out[0].values(),
                                &want,
                                tolerance(dtype),
                                error,
                                "softmax'",
                            );
                        },
                    );
                    // Logarithms of probabilities are not above 0.
                    let mut lower = y.values().into_iter().map(|y| -y.abs());
                    let y = Held::of(dtype, &shape, &lower.by_ref().collect::<Vec<_>>());
                    let want = along(&shape, dim, &[grad.values(), y.values()], |l| {
                        let sum: f64 = l[0].iter().sum();
                        l[0].iter().zip(&l[1]).map(|(g, y)| g - y.exp() * sum).collect()
                    });
                    launch_all(
                        &[&grad, &y],
                        &mut out,
                        0,
                        |l| log_softmax_backward(l, dim),
                        |out| {
                            assert_close(
                                &out[0].values(),
                                &want,
                                tolerance(dtype),
                                1e-3,
                                "log_softmax'",
                            );
                        },
                    );
                }
            }
        }
    }

    #[test]
    fn masked_and_poisoned_lines() {
        use plimsoll_core::DType;
        let inf = f64::INFINITY;
        let x = Held::of(DType::F32, &[3, 2], &[-inf, 0.0, -inf, -inf, f64::NAN, 1.0]);
        let mut out = [x.clone()];
        launch_all(
            &[&x],
            &mut out,
            0,
            |l| softmax(l, 1),
            |out| {
                let got = out[0].values();
                assert_eq!(got[..2], [0.0, 1.0]);
                assert!(got[2..].iter().all(|v| v.is_nan()));
            },
        );
    }
}
