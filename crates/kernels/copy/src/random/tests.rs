//! Random kernels: equal on every level and thread count, in every layout, and distributed as they
//! say.

use super::*;
use plimsoll_engine::testing::{FLOATS, Held, Lot, launch, launch_all, shapes};

const STREAM: Stream = Stream { seed: 0x1234_5678_9abc_def0, offset: 77 };

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance =
        values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

fn contiguous(dtype: DType, n: usize, kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>) -> Vec<f64> {
    let mut out = [Held::of(dtype, &[n], &vec![0.0; n])];
    launch(&[], &mut out, 0, kernel).unwrap();
    out[0].values()
}

#[test]
fn values_depend_on_the_logical_index_alone() {
    let mut lot = Lot(51);
    for dtype in FLOATS {
        for shape in shapes() {
            let n: usize = shape.iter().product();
            let kernel = |l: &CpuLaunch<'_>| uniform(l, 0.0, 1.0, STREAM);
            let want = contiguous(dtype, n, kernel);
            let mut out = [Held::output(&mut lot, dtype, &shape)];
            launch_all(&[], &mut out, 0, kernel, |out| assert_eq!(out[0].values(), want));
        }
    }
    for dtype in [DType::U8, DType::I32, DType::I64, DType::F32] {
        let kernel = |l: &CpuLaunch<'_>| randint(l, 3, 120, STREAM);
        let want = contiguous(dtype, 70_000, kernel);
        let mut out = [Held::output(&mut lot, dtype, &[700, 100])];
        launch_all(&[], &mut out, 0, kernel, |out| assert_eq!(out[0].values(), want));
    }
}

#[test]
fn a_later_offset_continues_the_stream() {
    let n = 4096;
    let all = contiguous(DType::F32, n, |l| uniform(l, 0.0, 1.0, STREAM));
    let draws = draws_per_element(DType::F32, Distribution::Uniform);
    let moved = Stream { offset: STREAM.offset + (n / 2 * draws).div_ceil(4) as u64, ..STREAM };
    let rest = contiguous(DType::F32, n / 2, |l| uniform(l, 0.0, 1.0, moved));
    assert_eq!(all[n / 2..], rest[..]);
    let draws = draws_per_element(DType::F64, Distribution::Normal);
    let all = contiguous(DType::F64, n, |l| normal(l, 0.0, 1.0, STREAM));
    let moved = Stream { offset: STREAM.offset + (n / 2 * draws).div_ceil(4) as u64, ..STREAM };
    let rest = contiguous(DType::F64, n / 2, |l| normal(l, 0.0, 1.0, moved));
    assert_eq!(all[n / 2..], rest[..]);
}

#[test]
fn uniforms_stay_below_their_end_and_spread() {
    for dtype in FLOATS {
        let values = contiguous(dtype, 100_000, |l| uniform(l, 0.0, 1.0, STREAM));
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)), "{dtype}");
        let (mean, deviation) = moments(&values);
        assert!((mean - 0.5).abs() < 5e-3, "{dtype} mean {mean}");
        assert!((deviation - 1.0 / 12f64.sqrt()).abs() < 5e-3, "{dtype} deviation {deviation}");
    }
}

#[test]
fn normals_have_their_moments_on_every_level() {
    for dtype in FLOATS {
        let n = 100_001;
        let want = contiguous(dtype, n, |l| normal(l, 2.0, 3.0, STREAM));
        let (mean, deviation) = moments(&want);
        assert!((mean - 2.0).abs() < 0.05, "{dtype} mean {mean}");
        assert!((deviation - 3.0).abs() < 0.05, "{dtype} deviation {deviation}");
        let inside = want.iter().filter(|v| (*v - 2.0).abs() < 3.0).count() as f64 / n as f64;
        assert!((inside - 0.6827).abs() < 0.01, "{dtype}: {inside} within one deviation");
        let mut out = [Held::of(dtype, &[n], &vec![0.0; n])];
        launch_all(
            &[],
            &mut out,
            0,
            |l| normal(l, 2.0, 3.0, STREAM),
            |out| {
                for (got, want) in out[0].values().iter().zip(&want) {
                    // Absolute: values near zero are differences of larger ones.
                    let error = (got - want).abs();
                    let bound = if matches!(dtype, DType::F16 | DType::BF16) { 0.13 } else { 4e-6 };
                    assert!(error <= bound, "{dtype}: {got} and {want}");
                }
            },
        );
    }
}

#[test]
fn whole_numbers_cover_their_range() {
    let values = contiguous(DType::I64, 50_000, |l| randint(l, -3, 4, STREAM));
    for wanted in -3..4 {
        let share = values.iter().filter(|&&v| v == f64::from(wanted)).count() as f64 / 50_000.0;
        assert!((share - 1.0 / 7.0).abs() < 0.01, "{wanted} came up {share} of the time");
    }
    assert!(values.iter().all(|v| (-3.0..4.0).contains(v)));
}

#[test]
fn dropout_keeps_a_share_and_rescales_it() {
    let mut lot = Lot(52);
    for dtype in FLOATS {
        let x = Held::random(&mut lot, dtype, &[300, 100], false);
        let mut out = [
            Held::output(&mut lot, dtype, &[300, 100]),
            Held::output(&mut lot, DType::Bool, &[300, 100]),
        ];
        let mut first: Option<Vec<f64>> = None;
        launch_all(
            &[&x],
            &mut out,
            0,
            |l| dropout(l, 0.25, STREAM),
            |out| {
                let mask = out[1].values();
                let kept = mask.iter().sum::<f64>() / 30_000.0;
                assert!((kept - 0.75).abs() < 0.02, "{kept} were kept");
                for ((x, y), keep) in x.values().iter().zip(out[0].values()).zip(&mask) {
                    let want = if *keep != 0.0 { x / 0.75 } else { 0.0 };
                    assert!((y - want).abs() <= 0.01 * want.abs(), "{x} became {y}");
                }
                assert_eq!(first.get_or_insert(mask.clone()), &mask);
            },
        );
        for p in [0.0, 1.0] {
            let mut out = [Held::output(&mut lot, dtype, &[300, 100])];
            launch(&[&x], &mut out, 0, |l| dropout(l, p, STREAM)).unwrap();
            let want = if p == 0.0 { x.values() } else { vec![0.0; 30_000] };
            assert_eq!(out[0].values(), want);
        }
    }
}
