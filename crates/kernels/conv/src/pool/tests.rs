//! Every kernel against plain loops, over random sizes and layouts, at every level and several
//! thread counts.

use plimsoll_core::DType;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::testing::{Held, Lot, assert_close, launch, launch_all, rounded, tolerance};

use super::window::Sample;
use super::*;

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::F16, DType::U8, DType::I64];

fn even(kernel: usize, stride: usize, padding: usize, dilation: usize) -> Window {
    Window::Even { kernel, stride, padding, dilation }
}

/// Windows and how many they are, over these sizes.
fn cases() -> Vec<([usize; 5], [Window; 3], [usize; 3])> {
    vec![
        ([2, 3, 1, 5, 7], [Window::NONE, even(3, 2, 1, 1), even(2, 1, 0, 2)], [1, 3, 5]),
        ([1, 2, 3, 4, 6], [even(2, 1, 1, 1), even(2, 2, 0, 1), even(3, 3, 1, 1)], [4, 2, 3]),
        ([2, 4, 1, 6, 5], [Window::NONE, Window::Adaptive, Window::Adaptive], [1, 4, 3]),
        ([1, 3, 1, 1, 300], [Window::NONE, Window::NONE, even(3, 2, 1, 1)], [1, 1, 150]),
        ([1, 140, 1, 2, 3], [Window::NONE, even(2, 1, 1, 1), even(2, 1, 1, 1)], [1, 3, 4]),
    ]
}

/// The places of a window's elements in a row-major channel.
fn places(
    sizes: &[usize; 5],
    windows: &[Window; 3],
    results: &[usize; 3],
    at: [usize; 3],
) -> Vec<usize> {
    let inside = |d: usize| {
        let (first, count, step) = windows[d].inside(at[d], results[d], sizes[d + 2], Sample::None);
        (0..count).map(move |i| first + i * step)
    };
    let mut all = Vec::new();
    for a in inside(0) {
        for b in inside(1) {
            all.extend(inside(2).map(|c| (a * sizes[3] + b) * sizes[4] + c));
        }
    }
    all
}

/// Calls `body(channel, result, its places)` for every result, counted row-major.
fn each(
    (sizes, windows, results): &([usize; 5], [Window; 3], [usize; 3]),
    mut body: impl FnMut(usize, usize, Vec<usize>),
) {
    let count: usize = results.iter().product();
    for channel in 0..sizes[0] * sizes[1] {
        for i in 0..count {
            let at = [i / results[2] / results[1], i / results[2] % results[1], i % results[2]];
            body(channel, channel * count + i, places(sizes, windows, results, at));
        }
    }
}

#[test]
fn the_largest_and_its_place() {
    let mut lot = Lot(21);
    for case in cases() {
        let (sizes, windows, results) = case;
        let space: usize = sizes[2..].iter().product();
        let shape = [&sizes[..2], &results[..]].concat();
        for dtype in DTYPES {
            let x = Held::random(&mut lot, dtype, &sizes, true);
            let values = x.values();
            let (mut largest, mut at) = (Vec::new(), Vec::new());
            each(&case, |channel, _, places| {
                let mut best = (f64::NEG_INFINITY, places[0]);
                for place in places {
                    let value = values[channel * space + place];
                    if value > best.0 || value.is_nan() {
                        best = (value, place);
                    }
                }
                largest.push(best.0);
                at.push(best.1 as f64);
            });
            let mut out =
                [Held::output(&mut lot, dtype, &shape), Held::output(&mut lot, DType::I64, &shape)];
            let run = |launch: &CpuLaunch<'_>| max_pool(launch, windows);
            launch_all(&[&x], &mut out, 0, run, |out| {
                assert_close(&out[0].values(), &largest, 0.0, 0.0, "largest");
                assert_close(&out[1].values(), &at, 0.0, 0.0, "places");
            });
            let mut alone = [Held::output(&mut lot, dtype, &shape)];
            launch_all(&[&x], &mut alone, 0, run, |out| {
                assert_close(&out[0].values(), &largest, 0.0, 0.0, "largest alone");
            });
        }
    }
}

#[test]
fn the_mean_and_what_comes_back() {
    let mut lot = Lot(22);
    for case in cases() {
        let (sizes, windows, results) = case;
        let space: usize = sizes[2..].iter().product();
        let shape = [&sizes[..2], &results[..]].concat();
        for divisor in [None, Some(3)] {
            let args = MeanArgs { windows, count_padding: false, divisor };
            for dtype in [DType::F32, DType::F64, DType::BF16] {
                let x = Held::random(&mut lot, dtype, &sizes, false);
                let grad = Held::random(&mut lot, dtype, &shape, false);
                let (values, grads) = (x.values(), grad.values());
                let (mut means, mut back) = (Vec::new(), vec![0.0; values.len()]);
                each(&case, |channel, result, places| {
                    let count = divisor.map_or(places.len() as f64, |divisor| divisor as f64);
                    let sum: f64 = places.iter().map(|p| values[channel * space + p]).sum();
                    means.push(rounded(dtype, sum / count));
                    for p in places {
                        back[channel * space + p] += grads[result] / count;
                    }
                });
                let mut out = [Held::output(&mut lot, dtype, &shape)];
                let run = |launch: &CpuLaunch<'_>| mean_pool(launch, args);
                launch_all(&[&x], &mut out, 0, run, |out| {
                    assert_close(&out[0].values(), &means, 2.0 * tolerance(dtype), 1e-4, "mean");
                });
                let mut out = [Held::output(&mut lot, dtype, &sizes)];
                let run = |launch: &CpuLaunch<'_>| mean_pool_backward(launch, args);
                // Halves are rounded at every addition.
                let near = 40.0 * tolerance(dtype);
                launch_all(&[&grad], &mut out, 0, run, |out| {
                    assert_close(&out[0].values(), &back, near, near, "what comes back");
                });
            }
        }
    }
}

#[test]
fn places_outside_are_an_error() {
    let values = Held::of(DType::F32, &[1, 1, 2], &[1.0, 2.0]);
    let mut out = [Held::of(DType::F32, &[1, 1, 4], &[9.0; 4])];
    let scatter = |launch: &CpuLaunch<'_>| scatter_places(launch, false);
    let inside = Held::of(DType::I64, &[1, 1, 2], &[3.0, 0.0]);
    launch(&[&values, &inside], &mut out, 0, scatter).unwrap();
    assert_eq!(out[0].values(), [2.0, 0.0, 0.0, 1.0]);
    for outside in [4.0, -1.0] {
        let places = Held::of(DType::I64, &[1, 1, 2], &[outside, 0.0]);
        let error = launch(&[&values, &places], &mut out, 0, scatter).unwrap_err();
        assert!(error.is_invalid_argument(), "{error}");
    }
}
