//! Layer normalization and its derivative against naive f64.

use plimsoll_core::DType;

use super::*;
use plimsoll_engine::testing::{
    FLOATS, Held, Lot, assert_close, launch_all, random_layout, tolerance,
};

const CASES: [(&[usize], usize); 8] = [
    (&[5], 1),
    (&[3, 8], 1),
    (&[4, 3, 7], 2),
    (&[6, 100], 1),
    (&[33, 70], 1),
    (&[2, 3, 40], 3),
    (&[700, 130], 1),
    (&[0, 4], 1),
];

fn rows_of(values: &[f64], len: usize) -> Vec<Vec<f64>> {
    values.chunks(len).map(<[f64]>::to_vec).collect()
}

fn moments(row: &[f64], eps: f64) -> (f64, f64) {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / row.len() as f64;
    (mean, 1.0 / (variance + eps).sqrt())
}

#[test]
fn forward_agrees_with_f64() {
    let mut lot = Lot(41);
    for dtype in FLOATS {
        for (shape, rank) in CASES {
            for (weight, bias) in [(false, false), (true, false), (true, true), (false, true)] {
                let normalized = &shape[shape.len() - rank..];
                let (len, lead) = (normalized.iter().product(), &shape[..shape.len() - rank]);
                // Not expanded: in a row of equal values rounding is all that is left.
                let layout = random_layout(&mut lot, shape, false);
                let x = Held::new(dtype, layout, || lot.value(dtype, false));
                let w = Held::random(&mut lot, dtype, normalized, false);
                let b = Held::random(&mut lot, dtype, normalized, false);
                let mut want = Vec::new();
                let mut kept = Vec::new();
                for row in rows_of(&x.values(), len) {
                    let (mean, rstd) = moments(&row, 1e-5);
                    kept.push(mean);
                    for ((x, w), b) in row.iter().zip(w.values()).zip(b.values()) {
                        let w = if weight { w } else { 1.0 };
                        want.push((x - mean) * rstd * w + if bias { b } else { 0.0 });
                    }
                }
                let mut inputs = vec![&x];
                inputs.extend(weight.then_some(&w));
                inputs.extend(bias.then_some(&b));
                let mut outputs = vec![Held::output(&mut lot, dtype, shape)];
                if lot.below(2) == 0 {
                    outputs.push(Held::output(&mut lot, dtype, lead));
                    outputs.push(Held::output(&mut lot, dtype, lead));
                }
                let args = LayerNormArgs { normalized_rank: rank, weight, bias, eps: 1e-5 };
                let metas: Vec<&Meta> = inputs.iter().map(|held| &held.meta).collect();
                let out_metas: Vec<Meta> = outputs.iter().map(|held| held.meta.clone()).collect();
                let bytes = parallel::with_threads(2, || {
                    layer_norm_workspace_bytes(&metas, &out_metas, rank)
                });
                let what = format!("layer_norm of {:?} over {rank}", x.meta);
                launch_all(
                    &inputs,
                    &mut outputs,
                    bytes,
                    |l| layer_norm(l, args),
                    |out| {
                        let relative = 4.0 * tolerance(dtype);
                        assert_close(&out[0].values(), &want, relative, 4e-5, &what);
                        if out.len() == 3 {
                            assert_close(&out[1].values(), &kept, tolerance(dtype), 1e-5, &what);
                        }
                    },
                );
            }
        }
    }
}

#[test]
fn backward_agrees_with_f64() {
    let mut lot = Lot(42);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (shape, rank) in CASES {
            for (weighted, bits) in [(true, 7), (false, 1), (true, 6), (true, 2), (false, 5)] {
                let wanted = LayerNormGrads {
                    input: bits & 1 != 0,
                    weight: bits & 2 != 0,
                    bias: bits & 4 != 0,
                    added: false,
                };
                check_backward(&mut lot, dtype, shape, rank, weighted, wanted);
            }
        }
    }
}

fn check_backward(
    lot: &mut Lot,
    dtype: DType,
    shape: &[usize],
    rank: usize,
    weighted: bool,
    wanted: LayerNormGrads,
) {
    let (lead, normalized) = shape.split_at(shape.len() - rank);
    let len: usize = normalized.iter().product();
    let layout = random_layout(lot, shape, false);
    let x = Held::new(dtype, layout, || lot.value(dtype, false));
    let grad = Held::random(lot, dtype, shape, false);
    let w = Held::random(lot, dtype, normalized, false);
    // Moments in f32 at least, as the forward kernel can keep them.
    let kept = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let (means, rstds): (Vec<f64>, Vec<f64>) =
        rows_of(&x.values(), len).iter().map(|row| moments(row, 1e-5)).unzip();
    let mean = Held::of(kept, lead, &means);
    let rstd = Held::of(kept, lead, &rstds);
    let (mut dx, mut dw, mut db) = (Vec::new(), vec![0.0; len], vec![0.0; len]);
    let pairs = rows_of(&x.values(), len).into_iter().zip(rows_of(&grad.values(), len));
    for (r, (row, g)) in pairs.enumerate() {
        let hat: Vec<f64> = row.iter().map(|x| (x - means[r]) * rstds[r]).collect();
        let scaled: Vec<f64> =
            g.iter().zip(w.values()).map(|(g, w)| if weighted { g * w } else { *g }).collect();
        let a = scaled.iter().sum::<f64>() / len as f64;
        let b = scaled.iter().zip(&hat).map(|(s, h)| s * h).sum::<f64>() / len as f64;
        for j in 0..len {
            dx.push(rstds[r] * (scaled[j] - a - hat[j] * b));
            dw[j] += g[j] * hat[j];
            db[j] += g[j];
        }
    }
    let mut inputs = vec![&grad, &x, &mean, &rstd];
    inputs.extend(weighted.then_some(&w));
    let (mut outputs, mut wants) = (Vec::new(), Vec::new());
    for (wanted, shape, want) in [
        (wanted.input, shape, &dx),
        (wanted.weight, normalized, &dw),
        (wanted.bias, normalized, &db),
    ] {
        if wanted {
            outputs.push(Held::output(lot, dtype, shape));
            wants.push(want);
        }
    }
    let metas: Vec<&Meta> = inputs.iter().map(|held| &held.meta).collect();
    let out_metas: Vec<Meta> = outputs.iter().map(|held| held.meta.clone()).collect();
    let bytes = layer_norm_backward_workspace_bytes(&metas, &out_metas, rank, wanted);
    let kernel = |l: &CpuLaunch<'_>| layer_norm_backward(l, rank, wanted);
    let mut runs: Vec<Vec<Vec<f64>>> = Vec::new();
    launch_all(&inputs, &mut outputs, bytes, kernel, |out| {
        for (out, want) in out.iter().zip(&wants) {
            let scale = want.iter().fold(1.0f64, |a, b| a.max(b.abs()));
            let what = format!("layer_norm' {dtype} {shape:?} over {rank}");
            assert_close(&out.values(), want, 4.0 * tolerance(dtype), 2e-5 * scale, &what);
        }
        runs.push(out.iter().map(Held::values).collect());
    });
    for pair in runs.chunks(2) {
        assert_eq!(pair[0], pair[1], "one and two threads agree bit for bit");
    }
}
