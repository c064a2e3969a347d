//! Batch normalization and its derivative against naive f64.

use plimsoll_core::{DType, Layout};

use super::*;
use plimsoll_engine::parallel;
use plimsoll_engine::testing::{
    FLOATS, Held, Lot, assert_close, launch_all, random_layout, tolerance,
};

/// Around the sizes at which runs are gathered, slices cut, tiles partial and channels divided.
const SHAPES: [&[usize]; 9] = [
    &[5, 3],
    &[2, 3, 4],
    &[2, 1, 7, 9],
    &[300, 70],
    &[4, 65, 40],
    &[3, 2, 5, 2, 20],
    &[2, 3, 600],
    &[2, 2, 90, 300],
    &[0, 4],
];

/// A random layout, or one whose channels are neighbours.
fn layout(lot: &mut Lot, shape: &[usize]) -> Layout {
    if lot.below(3) > 0 {
        return random_layout(lot, shape, false);
    }
    let mut strides = vec![1; shape.len()];
    let mut reach = shape[1].max(1);
    for dim in (2..shape.len()).rev().chain([0]) {
        strides[dim] = reach;
        reach *= shape[dim];
    }
    Layout::strided(shape, &strides, lot.below(3)).unwrap()
}

/// Values by channel, from logical order.
fn by_channel(values: &[f64], shape: &[usize]) -> Vec<Vec<f64>> {
    let inner: usize = shape[2..].iter().product();
    let mut channels = vec![Vec::new(); shape[1]];
    for (index, &value) in values.iter().enumerate() {
        channels[index / inner % shape[1]].push(value);
    }
    channels
}

/// The inverse of [`by_channel`].
fn interleaved(channels: &[Vec<f64>], shape: &[usize]) -> Vec<f64> {
    let inner: usize = shape[2..].iter().product();
    let mut next = vec![0; shape[1]];
    (0..shape.iter().product())
        .map(|index: usize| {
            let channel = index / inner % shape[1];
            next[channel] += 1;
            channels[channel][next[channel] - 1]
        })
        .collect()
}

fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count)
}

/// The dtype of what has an element a channel: the input's, or float32 beside halves.
fn parameter_dtype(lot: &mut Lot, dtype: DType) -> DType {
    if dtype.size_bytes() == 2 && lot.below(2) == 0 { DType::F32 } else { dtype }
}

fn parameter(lot: &mut Lot, dtype: DType, channels: usize) -> Held {
    let layout = random_layout(lot, &[channels], false);
    Held::new(dtype, layout, || 0.5 + (lot.below(8) as f64) * 0.25)
}

#[test]
fn training_agrees_with_f64() {
    let mut lot = Lot(43);
    for dtype in FLOATS {
        for shape in SHAPES {
            for (weight, bias, running, kept) in
                [(false, false, false, false), (true, false, true, true), (true, true, true, false)]
            {
                let of = parameter_dtype(&mut lot, dtype);
                let place = layout(&mut lot, shape);
                let x = Held::new(dtype, place, || lot.value(dtype, false) + 2.0);
                let [w, b, m, v] = [(); 4].map(|()| parameter(&mut lot, of, shape[1]));
                let args = BatchNormArgs {
                    training: true,
                    running,
                    weight,
                    bias,
                    momentum: 0.25,
                    eps: 1e-3,
                };
                let mut want = Vec::new();
                let (mut means, mut variances) = (m.values(), v.values());
                for (c, values) in by_channel(&x.values(), shape).iter().enumerate() {
                    let (mean, variance) = moments(values);
                    let w = if weight { w.values()[c] } else { 1.0 };
                    let b = if bias { b.values()[c] } else { 0.0 };
                    let normal = |x: f64| (x - mean) / (variance + 1e-3).sqrt() * w + b;
                    want.push(values.iter().map(|&x| normal(x)).collect());
                    let count = values.len() as f64;
                    if count > 0.0 {
                        means[c] = 0.75 * means[c] + 0.25 * mean;
                        variances[c] =
                            0.75 * variances[c] + 0.25 * variance * count / (count - 1.0);
                    }
                }
                let want = interleaved(&want, shape);
                let mut inputs = vec![&x];
                inputs.extend(weight.then_some(&w));
                inputs.extend(bias.then_some(&b));
                let place = layout(&mut lot, shape);
                let mut outputs = vec![Held::new(dtype, place, || 0.0)];
                let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
                if kept {
                    outputs.extend([(); 2].map(|()| Held::output(&mut lot, wide, &[shape[1]])));
                }
                if running {
                    outputs.extend([m.clone(), v.clone()]);
                }
                let what = format!("batch_norm of {:?} to {:?}", x.meta, outputs[0].meta);
                let bytes = scratch(&inputs, &outputs, |inputs, outputs| {
                    batch_norm_workspace_bytes(inputs, outputs, true)
                });
                launch_all(
                    &inputs,
                    &mut outputs,
                    bytes,
                    |l| batch_norm(l, args),
                    |out| {
                        assert_close(&out[0].values(), &want, 4.0 * tolerance(dtype), 4e-5, &what);
                        if let (true, [.., m, v]) = (running, out) {
                            assert_close(&m.values(), &means, tolerance(of), 1e-5, &what);
                            assert_close(&v.values(), &variances, 8.0 * tolerance(of), 1e-5, &what);
                        }
                    },
                );
            }
        }
    }
}

fn scratch(
    inputs: &[&Held],
    outputs: &[Held],
    bytes: impl Fn(&[&Meta], &[Meta]) -> usize,
) -> usize {
    let inputs: Vec<&Meta> = inputs.iter().map(|held| &held.meta).collect();
    let outputs: Vec<Meta> = outputs.iter().map(|held| held.meta.clone()).collect();
    parallel::with_threads(2, || bytes(&inputs, &outputs))
}

#[test]
fn evaluation_agrees_with_f64() {
    let mut lot = Lot(44);
    for dtype in FLOATS {
        for shape in SHAPES {
            let of = parameter_dtype(&mut lot, dtype);
            let place = layout(&mut lot, shape);
            let x = Held::new(dtype, place, || lot.value(dtype, false));
            let [m, v, w] = [(); 3].map(|()| parameter(&mut lot, of, shape[1]));
            let (m_, v_, w_) = (m.values(), v.values(), w.values());
            let channels = by_channel(&x.values(), shape);
            let want: Vec<Vec<f64>> = channels
                .iter()
                .enumerate()
                .map(|(c, values)| {
                    let normal = |x: &f64| (x - m_[c]) / (v_[c] + 1e-3).sqrt() * w_[c];
                    values.iter().map(normal).collect()
                })
                .collect();
            let want = interleaved(&want, shape);
            let place = layout(&mut lot, shape);
            let mut outputs = vec![Held::new(dtype, place, || 0.0)];
            let (training, running, weight, bias) = (false, true, true, false);
            let args = BatchNormArgs { training, running, weight, bias, momentum: 0.1, eps: 1e-3 };
            let what = format!("batch_norm of {:?} to {:?}", x.meta, outputs[0].meta);
            launch_all(
                &[&x, &m, &v, &w],
                &mut outputs,
                0,
                |l| batch_norm(l, args),
                |out| assert_close(&out[0].values(), &want, 4.0 * tolerance(dtype), 4e-5, &what),
            );
        }
    }
}

#[test]
fn gradients_agree_with_f64() {
    let mut lot = Lot(45);
    for dtype in FLOATS {
        for shape in SHAPES {
            for (training, with_input, with_weight) in
                [(true, true, true), (true, false, true), (true, true, false), (false, true, true)]
            {
                let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
                let place = layout(&mut lot, shape);
                let x = Held::new(dtype, place, || lot.value(dtype, false));
                let place = random_layout(&mut lot, shape, true);
                let grad = Held::new(dtype, place, || lot.value(dtype, false) * 0.1);
                let w = parameter(&mut lot, wide, shape[1]);
                let (mut means, mut spreads) = (Vec::new(), Vec::new());
                let [mut want, mut weights, mut biases] = [vec![], vec![], vec![]];
                let mut wanted_inputs = Vec::new();
                let grads = by_channel(&grad.values(), shape);
                for (c, values) in by_channel(&x.values(), shape).iter().enumerate() {
                    let (mean, variance) =
                        if training { moments(values) } else { (0.25, 1.5 + c as f64) };
                    let rstd = if values.is_empty() { 0.0 } else { 1.0 / (variance + 1e-3).sqrt() };
                    means.push(if values.is_empty() { 0.0 } else { mean });
                    spreads.push(if training { rstd } else { variance });
                    let hats: Vec<f64> = values.iter().map(|x| (x - mean) * rstd).collect();
                    let total: f64 = grads[c].iter().sum();
                    let product: f64 = grads[c].iter().zip(&hats).map(|(g, h)| g * h).sum();
                    let n = values.len() as f64;
                    let own = if training { 1.0 } else { 0.0 };
                    let input = |(g, h): (&f64, &f64)| {
                        (g - own * (total / n + h * product / n)) * rstd * w.values()[c]
                    };
                    wanted_inputs.push(grads[c].iter().zip(&hats).map(input).collect());
                    weights.push(product);
                    biases.push(total);
                }
                want.extend(interleaved(&wanted_inputs, shape));
                let mean = Held::of(wide, &[shape[1]], &means);
                let spread = Held::of(wide, &[shape[1]], &spreads);
                let place = layout(&mut lot, shape);
                let mut outputs = Vec::new();
                if with_input {
                    outputs.push(Held::new(dtype, place, || 0.0));
                }
                if with_weight {
                    outputs.extend([(); 2].map(|()| Held::output(&mut lot, wide, &[shape[1]])));
                }
                let (input, weight, bias) = (with_input, with_weight, with_weight);
                let wanted = BatchNormGrads { input, weight, bias };
                let args = BatchNormBackwardArgs { training, wanted, eps: 1e-3 };
                let inputs = [&grad, &x, &mean, &spread, &w];
                let bytes = scratch(&inputs, &outputs, |inputs, outputs| {
                    batch_norm_backward_workspace_bytes(inputs, outputs, args)
                });
                let what = format!("batch_norm_backward of {:?} and {:?}", x.meta, grad.meta);
                launch_all(
                    &inputs,
                    &mut outputs,
                    bytes,
                    |l| batch_norm_backward(l, args),
                    |out| {
                        let mut out = out.iter();
                        if with_input {
                            let found = out.next().unwrap().values();
                            assert_close(&found, &want, 4.0 * tolerance(dtype), 4e-5, &what);
                        }
                        if with_weight {
                            let near = 2e-3;
                            let found = out.next().unwrap().values();
                            assert_close(&found, &weights, 1e-4, near, &what);
                            let found = out.next().unwrap().values();
                            assert_close(&found, &biases, 1e-4, near, &what);
                        }
                    },
                );
            }
        }
    }
}

/// A channel far from 0 keeps its variance, which sums of squares would lose.
#[test]
fn a_far_mean_does_not_hurt_the_variance() {
    let values: Vec<f64> = (0..100_000).map(|i| 10_000.0 + f64::from(i % 2)).collect();
    for shape in [[1, 1, 100_000], [50_000, 2, 1]] {
        let x = Held::of(DType::F32, &shape, &values);
        let [mean, var] = [(); 2].map(|()| Held::of(DType::F64, &[shape[1]], &vec![0.0; shape[1]]));
        let out = Held::of(DType::F32, &shape, &vec![0.0; 100_000]);
        let mut outputs = [out, mean, var];
        let (training, running, weight, bias) = (true, true, false, false);
        let args = BatchNormArgs { training, running, weight, bias, momentum: 1.0, eps: 1e-5 };
        let bytes = scratch(&[&x], &outputs, |inputs, outputs| {
            batch_norm_workspace_bytes(inputs, outputs, true)
        });
        launch_all(
            &[&x],
            &mut outputs,
            bytes,
            |l| batch_norm(l, args),
            |out| {
                let want = if shape[1] == 1 { 0.25 * 100_000.0 / 99_999.0 } else { 0.0 };
                assert_close(&out[2].values(), &vec![want; shape[1]], 1e-6, 1e-9, "variance");
            },
        );
    }
}

/// Values do not depend on who computes them: parts are joined in order on any number of threads.
#[test]
fn threads_do_not_change_a_bit() {
    let mut lot = Lot(46);
    for shape in [[3, 2, 70_000], [70_000, 3, 2], [40, 64, 100]] {
        let place = layout(&mut lot, &shape);
        let x = Held::new(DType::F32, place, || lot.signed());
        let mut found: Option<Vec<f64>> = None;
        for threads in [1, 2, 3, 5] {
            let mut out = [Held::of(DType::F32, &shape, &vec![0.0; shape.iter().product()])];
            let (training, running, weight, bias) = (true, false, false, false);
            let args = BatchNormArgs { training, running, weight, bias, momentum: 1.0, eps: 1e-5 };
            plimsoll_engine::testing::at(simd::Isa::detected(), threads, || {
                let bytes = batch_norm_workspace_bytes(&[&x.meta], &[out[0].meta.clone()], true);
                plimsoll_engine::testing::launch(&[&x], &mut out, bytes, |l| batch_norm(l, args))
                    .unwrap();
            });
            let values = out[0].values();
            assert!(found.get_or_insert_with(|| values.clone()) == &values, "{threads} threads");
        }
    }
}
