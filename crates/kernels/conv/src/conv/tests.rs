//! Every kernel against the sum that defines it, in f64, over random sizes and layouts, at every
//! level and several thread counts.

use plimsoll_core::DType;
use plimsoll_engine::Meta;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Isa};
use plimsoll_engine::testing::{Held, Lot, assert_close, launch_all, rounded, tolerance};

use super::*;

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64];

/// A convolution: sizes of everything.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    channels: usize,
    grads: usize,
    size: [usize; 3],
    kernel: [usize; 3],
    args: ConvArgs,
}

impl Case {
    fn results(&self) -> [usize; 3] {
        std::array::from_fn(|d| {
            let span = self.args.dilation[d] * (self.kernel[d] - 1) + 1;
            (self.size[d] + 2 * self.args.padding[d] - span) / self.args.stride[d] + 1
        })
    }

    fn x(&self) -> Vec<usize> {
        [&[self.batch, self.channels], &self.size[..]].concat()
    }

    fn y(&self) -> Vec<usize> {
        [&[self.batch, self.grads], &self.results()[..]].concat()
    }

    fn weight(&self) -> Vec<usize> {
        [&[self.grads, self.channels / self.args.groups], &self.kernel[..]].concat()
    }

    /// Calls `body(x, weight, y)` with the row-major places of every product there is.
    fn each(&self, mut body: impl FnMut(usize, usize, usize)) {
        let Case { batch, channels, grads, size, kernel, args } = *self;
        let results = self.results();
        let (inner, outer) = (channels / args.groups, grads / args.groups);
        let places = |sizes: [usize; 3]| {
            let [a, b, c] = sizes;
            (0..a * b * c).map(move |i| [i / c / b, i / c % b, i % c])
        };
        let at = |sizes: [usize; 3], p: [usize; 3]| (p[0] * sizes[1] + p[1]) * sizes[2] + p[2];
        let space = |sizes: [usize; 3]| sizes.iter().product::<usize>();
        for n in 0..batch {
            for o in 0..grads {
                for c in 0..inner {
                    for y in places(results) {
                        for k in places(kernel) {
                            let x: [Option<usize>; 3] = std::array::from_fn(|d| {
                                (y[d] * args.stride[d] + k[d] * args.dilation[d])
                                    .checked_sub(args.padding[d])
                                    .filter(|&x| x < size[d])
                            });
                            let [Some(a), Some(b), Some(w)] = x else { continue };
                            let channel = o / outer * inner + c;
                            body(
                                (n * channels + channel) * space(size) + at(size, [a, b, w]),
                                (o * inner + c) * space(kernel) + at(kernel, k),
                                (n * grads + o) * space(results) + at(results, y),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let args = |stride, padding, dilation, groups| ConvArgs { stride, padding, dilation, groups };
    let case = |(batch, channels, grads), size, kernel, args| Case {
        batch,
        channels,
        grads,
        size,
        kernel,
        args,
    };
    vec![
        case((2, 3, 5), [1, 6, 7], [1, 3, 3], args([1; 3], [0, 1, 1], [1; 3], 1)),
        case((1, 4, 40), [1, 5, 31], [1, 3, 2], args([1, 2, 1], [0, 1, 0], [1; 3], 1)),
        case((2, 4, 6), [1, 9, 8], [1, 3, 3], args([1, 2, 3], [0, 2, 1], [1, 2, 1], 2)),
        case((2, 4, 4), [1, 7, 9], [1, 3, 3], args([1; 3], [0, 1, 1], [1; 3], 4)),
        case((1, 3, 6), [1, 8, 8], [1, 2, 3], args([1, 2, 2], [0, 0, 1], [1, 1, 2], 3)),
        case((1, 2, 3), [4, 5, 6], [2, 3, 2], args([2, 1, 2], [1, 1, 0], [1, 2, 1], 1)),
        case((1, 3, 2), [1, 1, 470], [1, 1, 5], args([1, 1, 1], [0, 0, 2], [1, 1, 2], 1)),
        case((1, 130, 3), [1, 3, 3], [1, 3, 3], args([1; 3], [0, 1, 1], [1; 3], 1)),
        case((3, 2, 2), [1, 4, 4], [1, 1, 1], args([1, 3, 3], [0, 0, 0], [1; 3], 1)),
        case((1, 16, 16), [1, 10, 10], [1, 4, 4], args([1, 2, 2], [0, 1, 1], [1; 3], 2)),
    ]
}

/// The most scratch that any level and thread count asks for.
fn scratch(bytes: impl Fn() -> usize) -> usize {
    let before = simd::isa();
    let mut most = 0;
    for isa in Isa::available() {
        simd::set_isa(isa);
        for threads in 1..=4 {
            most = most.max(parallel::with_threads(threads, &bytes));
        }
    }
    simd::set_isa(before);
    most
}

/// The sums of a case, rounded; integers exactly.
fn sums(dtype: DType, len: usize, mut add: impl FnMut(&mut [f64])) -> Vec<f64> {
    let mut sums = vec![0.0; len];
    add(&mut sums);
    sums.into_iter().map(|sum| rounded(dtype, sum)).collect()
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

#[test]
fn windows_times_weights() {
    let mut lot = Lot(5);
    for case in cases() {
        for dtype in DTYPES {
            let x = Held::random(&mut lot, dtype, &case.x(), false);
            let weight = Held::random(&mut lot, dtype, &case.weight(), false);
            let bias = Held::random(&mut lot, dtype, &[case.grads], false);
            let (a, w, b) = (x.values(), weight.values(), bias.values());
            let each = count(&case.results());
            let want = sums(dtype, count(&case.y()), |y| {
                case.each(|i, j, o| y[o] += a[i] * w[j]);
                y.iter_mut().enumerate().for_each(|(o, y)| *y += b[o / each % case.grads]);
            });
            let mut out = [Held::output(&mut lot, dtype, &case.y())];
            let metas: [&Meta; 3] = [&x.meta, &weight.meta, &bias.meta];
            let bytes = scratch(|| conv_workspace_bytes(&metas, &out[0].meta, case.args));
            let run = |launch: &CpuLaunch<'_>| conv(launch, case.args);
            launch_all(&[&x, &weight, &bias], &mut out, bytes, run, |out| {
                let got = out[0].values();
                assert_close(&got, &want, 2.0 * tolerance(dtype), 0.02, &format!("{case:?}"));
            });
        }
    }
}

#[test]
fn what_comes_back_to_the_input() {
    let mut lot = Lot(6);
    for case in cases() {
        for dtype in DTYPES {
            let grad = Held::random(&mut lot, dtype, &case.y(), false);
            let weight = Held::random(&mut lot, dtype, &case.weight(), false);
            let (g, w) = (grad.values(), weight.values());
            let want = sums(dtype, count(&case.x()), |x| {
                case.each(|i, j, o| x[i] += g[o] * w[j]);
            });
            let mut out = [Held::output(&mut lot, dtype, &case.x())];
            let metas: [&Meta; 2] = [&grad.meta, &weight.meta];
            let bytes = scratch(|| conv_input_workspace_bytes(&metas, &out[0].meta, case.args));
            let run = |launch: &CpuLaunch<'_>| conv_input(launch, case.args);
            launch_all(&[&grad, &weight], &mut out, bytes, run, |out| {
                let got = out[0].values();
                assert_close(&got, &want, 2.0 * tolerance(dtype), 0.02, &format!("{case:?}"));
            });
        }
    }
}

#[test]
fn what_comes_back_to_the_weight() {
    let mut lot = Lot(7);
    for case in cases() {
        for dtype in DTYPES {
            let x = Held::random(&mut lot, dtype, &case.x(), false);
            let grad = Held::random(&mut lot, dtype, &case.y(), false);
            let (a, g) = (x.values(), grad.values());
            let want = sums(dtype, count(&case.weight()), |w| {
                case.each(|i, j, o| w[j] += a[i] * g[o]);
            });
            let mut out = [Held::output(&mut lot, dtype, &case.weight())];
            let metas: [&Meta; 2] = [&x.meta, &grad.meta];
            let bytes = scratch(|| conv_weight_workspace_bytes(&metas, &out[0].meta, case.args));
            let run = |launch: &CpuLaunch<'_>| conv_weight(launch, case.args);
            launch_all(&[&x, &grad], &mut out, bytes, run, |out| {
                let got = out[0].values();
                assert_close(&got, &want, 2.0 * tolerance(dtype), 0.1, &format!("{case:?}"));
            });
        }
    }
}
