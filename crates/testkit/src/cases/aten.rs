//! What PyTorch keeps for its own compositions; norms with their moments; membership; distances;
//! powers of matrices; differences.

use plimsoll_core::DType;
use plimsoll_tensor::{
    BatchNormOptions, CdistOptions, GradientOptions, GroupNormOptions, LayerNormOptions, Tensor,
};

use super::input::{any, below, distinct, fraction, mask};
use super::{Case, FLOATS, Input, NUMBERS, SINGLE_AND_DOUBLE};
use crate::oracle::{Array, Number, indices};

/// What PyTorch makes rows of powers of.
const VANDER: [DType; 7] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = softmaxes();
    cases.extend(norms());
    cases.extend(indexing());
    cases.extend(membership());
    cases.extend(distances());
    cases.extend(matrices());
    cases
}

fn softmaxes() -> Vec<Case> {
    let at = |x: &Array, row: usize, column: usize| x.at(&[row, column]).to_f64();
    vec![
        Case::new(
            "_softmax_backward_data",
            "torch._softmax_backward_data(a, b, 1, a.dtype)",
            [any(&[3, 4]), fraction(&[3, 4])],
        )
        .run(|t| Tensor::softmax_backward_data(&t[0], &t[1], 1, t.dtype))
        .oracle(move |x| {
            Array::build(x.dtype, &[3, 4], |i| {
                let dot: f64 = (0..4).map(|c| at(&x[0], i[0], c) * at(&x[1], i[0], c)).sum();
                at(&x[1], i[0], i[1]) * (at(&x[0], i[0], i[1]) - dot)
            })
        })
        .dtypes(&FLOATS)
        .taking_only_these()
        .tolerance(64.0, 16.0)
        .plain()
        .gradient(&[0, 1]),
        Case::new("_safe_softmax", "torch.ops.aten._safe_softmax(a, 1)", [any(&[3, 4])])
            .run(|t| t[0].safe_softmax(1))
            .oracle(move |x| {
                Array::build(x.dtype, &[3, 4], |i| {
                    let sum: f64 = (0..4).map(|c| at(&x[0], i[0], c).exp()).sum();
                    at(&x[0], i[0], i[1]).exp() / sum
                })
            })
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 1.0)
            .brief()
            .gradient(&[0]),
        Case::new(
            "native_dropout_backward",
            "torch.ops.aten.native_dropout_backward(a, b, 2.0)",
            [any(&[3, 4]), mask(&[3, 4])],
        )
        .run(|t| Tensor::native_dropout_backward(&t[0], &t[1], 2.0))
        .oracle(|x| {
            let dtype = if x.dtype.is_float() { x.dtype } else { DType::F32 };
            Array::build(dtype, &[3, 4], |i| {
                if x[1].at(i).is_true() { 2.0 * x[0].at(i).to_f64() } else { 0.0 }
            })
        })
        .brief()
        .gradient(&[0]),
    ]
}

/// What a norm of lanes gives: each element's lane is `lane(index)` of `shape`.
fn normalized(x: &Array, shape: &[usize], lane: fn(&[usize]) -> Vec<usize>) -> Vec<Array> {
    let mean = |at: &[usize], of: &dyn Fn(f64) -> f64| {
        let lane = indices(x.shape()).filter(|i| lane(i) == at).map(|i| of(x.at(&i).to_f64()));
        let values: Vec<f64> = lane.collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let rstd = |at: &[usize]| {
        let middle = mean(at, &|x| x);
        1.0 / (mean(at, &|x| (x - middle).powi(2)) + 1e-5).sqrt()
    };
    vec![
        Array::build(x.dtype(), x.shape(), |i| {
            let at = lane(i);
            (x.at(i).to_f64() - mean(&at, &|x| x)) * rstd(&at)
        }),
        Array::build(x.dtype(), shape, |at| mean(at, &|x| x)),
        Array::build(x.dtype(), shape, rstd),
    ]
}

fn norms() -> Vec<Case> {
    let row = |op, torch: &str, input| {
        Case::new(op, torch, [input])
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these()
            .tolerance(64.0, 4.0)
            .plain()
    };
    // Their first results, which have derivatives.
    let first = |op, torch: &str, input| {
        Case::new(op, format!("{torch}[0]"), [input])
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(64.0, 4.0)
            .plain()
            .gradient(&[0])
    };
    let training = || BatchNormOptions::new().training(true);
    let channel: fn(&[usize]) -> Vec<usize> = |i| vec![i[1]];
    vec![
        first("native_layer_norm", "torch.native_layer_norm(a, [4], None, None, 1e-5)", any(&[3, 4]))
            .run(|t| Ok(t[0].native_layer_norm(&[4], LayerNormOptions::new())?.0))
            .oracle(|x| normalized(&x[0], &[3, 1], |i| vec![i[0], 0]).swap_remove(0)),
        first(
            "native_group_norm",
            "torch.native_group_norm(a, None, None, 2, 4, 3, 2, 1e-5)",
            any(&[2, 4, 3]),
        )
        .run(|t| Ok(t[0].native_group_norm(2, GroupNormOptions::new())?.0))
        .oracle(|x| normalized(&x[0], &[2, 2], |i| vec![i[0], i[1] / 2]).swap_remove(0)),
        first(
            "native_batch_norm",
            "torch.native_batch_norm(a, None, None, None, None, True, 0.1, 1e-5)",
            any(&[4, 3]),
        )
        .run(move |t| Ok(t[0].native_batch_norm(None, None, training())?.0))
        .oracle(move |x| normalized(&x[0], &[3], channel).swap_remove(0)),
        first(
            "_native_batch_norm_legit",
            "torch._native_batch_norm_legit(a, None, None, True, 0.1, 1e-5)",
            any(&[4, 3]),
        )
        .run(move |t| Ok(t[0].native_batch_norm_legit(None, None, training())?.0))
        .oracle(move |x| normalized(&x[0], &[3], channel).swap_remove(0)),
        first(
            "_batch_norm_with_update",
            "torch.ops.aten._batch_norm_with_update(a, None, None, a.new_zeros(3), a.new_ones(3), 0.1, 1e-5)",
            any(&[4, 3]),
        )
        .run(move |t| {
            let made = |value: i64| Tensor::full(&[3], value, (t.dtype, t.device));
            Ok(t[0].batch_norm_with_update(&made(0)?, &made(1)?, training())?.0)
        })
        .oracle(move |x| normalized(&x[0], &[3], channel).swap_remove(0)),
        row("native_layer_norm", "torch.native_layer_norm(a, [4], None, None, 1e-5)", any(&[3, 4]))
            .run(|t| t[0].native_layer_norm(&[4], LayerNormOptions::new()))
            .oracle(|x| normalized(&x[0], &[3, 1], |i| vec![i[0], 0])),
        row(
            "native_group_norm",
            "torch.native_group_norm(a, None, None, 2, 4, 3, 2, 1e-5)",
            any(&[2, 4, 3]),
        )
        .run(|t| t[0].native_group_norm(2, GroupNormOptions::new()))
        .oracle(|x| normalized(&x[0], &[2, 2], |i| vec![i[0], i[1] / 2])),
        row(
            "native_batch_norm",
            "torch.native_batch_norm(a, None, None, None, None, True, 0.1, 1e-5)",
            any(&[4, 3]),
        )
        .run(move |t| t[0].native_batch_norm(None, None, training()))
        .oracle(move |x| normalized(&x[0], &[3], channel)),
        row(
            "_native_batch_norm_legit",
            "torch._native_batch_norm_legit(a, None, None, True, 0.1, 1e-5)",
            any(&[4, 3]),
        )
        .run(move |t| t[0].native_batch_norm_legit(None, None, training()))
        .oracle(move |x| normalized(&x[0], &[3], channel)),
        row(
            "_batch_norm_with_update",
            "torch.ops.aten._batch_norm_with_update(a, None, None, a.new_zeros(3), a.new_ones(3), 0.1, 1e-5)[:3]",
            any(&[4, 3]),
        )
        .run(move |t| {
            let made = |value: i64| Tensor::full(&[3], value, (t.dtype, t.device));
            let results = t[0].batch_norm_with_update(&made(0)?, &made(1)?, training())?;
            Ok((results.0, results.1, results.2))
        })
        .oracle(move |x| normalized(&x[0], &[3], channel)),
    ]
}

fn indexing() -> Vec<Case> {
    vec![
        Case::new("_chunk_cat", "torch._chunk_cat([a, b], 0, 2)", [any(&[3, 2]), any(&[2, 2])])
            .run(|t| Tensor::chunk_cat(&[&t[0], &t[1]], 0, 2))
            .oracle(|x| {
                let mut result = Array::zeros(x.dtype, &[2, 6]);
                for i in indices(&[2, 6]) {
                    let (row, column) = (2 * i[0] + i[1] / 2, i[1] % 2);
                    if i[1] >= 4 {
                        result.set(&i, x[1].at(&[i[0], column]));
                    } else if row < 3 {
                        result.set(&i, x[0].at(&[row, column]));
                    }
                }
                result
            })
            .brief()
            .gradient(&[0, 1]),
        Case::new(
            "_unsafe_masked_index",
            "torch._unsafe_masked_index(a, b, [c], 1)",
            [any(&[4]), mask(&[5]), below(4, &[5])],
        )
        .run(|t| t[0].unsafe_masked_index(&t[1], &[Some(&t[2])], 1))
        .oracle(|x| {
            Array::build(x.dtype, &[5], |i| {
                let there = x[0].at(&[x[2].at(i).to_i64() as usize]).to_f64();
                if x[1].at(i).is_true() { there } else { 1.0 }
            })
        })
        .plain()
        .gradient(&[0]),
        Case::new(
            "_unsafe_masked_index_put_accumulate",
            "torch._unsafe_masked_index_put_accumulate(a, b, [c], d)",
            [any(&[4]), mask(&[5]), below(4, &[5]), any(&[5])],
        )
        .run(|t| t[0].unsafe_masked_index_put_accumulate(&t[1], &[Some(&t[2])], &t[3]))
        .oracle(|x| {
            Array::build(x.dtype, &[4], |i| {
                let added = (0..5).filter(|&j| {
                    x[1].at(&[j]).is_true() && x[2].at(&[j]).to_i64() as usize == i[0]
                });
                x[0].at(i).to_f64() + added.map(|j| x[3].at(&[j]).to_f64()).sum::<f64>()
            })
        })
        .tolerance(8.0, 16.0)
        .plain()
        .gradient(&[0, 3]),
    ]
}

fn membership() -> Vec<Case> {
    vec![
        Case::new("isin", "torch.isin(a, b)", [any(&[3, 4]), any(&[5])])
            .run(|t| Tensor::isin(&t[0], &t[1]))
            .oracle(|x| {
                Array::build(DType::Bool, &[3, 4], |i| {
                    (0..5).any(|j| x[1].at(&[j]).to_f64() == x[0].at(i).to_f64())
                })
            })
            .dtypes(&NUMBERS)
            .taking_only_these(),
        Case::new("one_hot", "torch.nn.functional.one_hot(a, 5)", [below(5, &[3, 4])])
            .run(|t| t[0].one_hot(5))
            .oracle(|x| {
                Array::build(DType::I64, &[3, 4, 5], |i| {
                    i64::from(x[0].at(&i[..2]).to_i64() == i[2] as i64)
                })
            })
            .dtypes(&[DType::I64])
            .taking_only_these(),
        Case::new("gradient", "torch.gradient(a, spacing=2.0, dim=0)[0]", [any(&[4, 3])])
            .run(|t| {
                let options = GradientOptions::new().spacing(2.0).dim(0);
                Ok(t[0].gradient_with(options)?.swap_remove(0))
            })
            .oracle(|x| {
                let dtype = if x.dtype.is_float() { x.dtype } else { DType::F32 };
                Array::build(dtype, &[4, 3], |i| {
                    let (low, high) = (i[0].saturating_sub(1), (i[0] + 1).min(3));
                    let rise = x[0].at(&[high, i[1]]).to_f64() - x[0].at(&[low, i[1]]).to_f64();
                    rise / (2.0 * (high - low) as f64)
                })
            })
            .dtypes(&NUMBERS[1..])
            .taking_only_these()
            .tolerance(8.0, 8.0)
            .brief()
            .gradient(&[0]),
    ]
}

fn distances() -> Vec<Case> {
    let apart = |x: &Array, y: &Array, i: &[usize], p: f64| {
        let at = |x: &Array, row: usize, column: usize| x.at(&[row, column]).to_f64();
        let sum: f64 = (0..3).map(|c| (at(x, i[0], c) - at(y, i[1], c)).abs().powf(p)).sum();
        sum.powf(1.0 / p)
    };
    let row = |op, torch: &str, inputs: [Input; 2]| {
        Case::new(op, torch, inputs)
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these()
            .tolerance(64.0, 8.0)
            .brief()
    };
    vec![
        row("cdist", "torch.cdist(a, b)", [any(&[4, 3]), any(&[5, 3])])
            .run(|t| Tensor::cdist(&t[0], &t[1]))
            .oracle(move |x| Array::build(x.dtype, &[4, 5], |i| apart(&x[0], &x[1], i, 2.0)))
            .gradient(&[0, 1]),
        row("cdist", "torch.cdist(a, b, p=3.0)", [any(&[4, 3]), any(&[5, 3])])
            .run(|t| Tensor::cdist_with(&t[0], &t[1], CdistOptions::new().p(3.0)))
            .oracle(move |x| Array::build(x.dtype, &[4, 5], |i| apart(&x[0], &x[1], i, 3.0)))
            .gradient(&[0, 1]),
        Case::new("pdist", "torch.nn.functional.pdist(a)", [distinct(&[3, 3])])
            .run(|t| t[0].pdist())
            .oracle(move |x| {
                let pairs = [[0, 1], [0, 2], [1, 2]];
                Array::build(x.dtype, &[3], |i| apart(&x[0], &x[0], &pairs[i[0]], 2.0))
            })
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these()
            .tolerance(64.0, 8.0)
            .brief()
            .gradient(&[0]),
    ]
}

fn matrices() -> Vec<Case> {
    let cube = |x: &Array| {
        let whole = |row: usize, column: usize| x.at(&[row, column]).to_i64();
        let real = |row: usize, column: usize| x.at(&[row, column]).to_f64();
        Array::build(x.dtype(), &[3, 3], |i| {
            let paths = indices(&[3, 3]);
            if x.dtype().is_float() {
                let steps = paths.map(|p| real(i[0], p[0]) * real(p[0], p[1]) * real(p[1], i[1]));
                return Number::Float(steps.sum());
            }
            Number::Int(paths.fold(0i64, |sum, p| {
                let step = whole(i[0], p[0]).wrapping_mul(whole(p[0], p[1]));
                sum.wrapping_add(step.wrapping_mul(whole(p[1], i[1])))
            }))
        })
    };
    let power = |op, torch: &str| {
        Case::new(op, torch, [any(&[3, 3])])
            .oracle(move |x| cube(&x[0]))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(64.0, 256.0)
            .brief()
            .gradient(&[0])
    };
    vec![
        Case::new("trace", "torch.trace(a)", [any(&[3, 4])])
            .run(|t| t[0].trace())
            .oracle(|x| {
                let dtype = if x.dtype.is_float() { x.dtype } else { DType::I64 };
                let sum: f64 = (0..3).map(|i| x[0].at(&[i, i]).to_f64()).sum();
                Array::build(dtype, &[], |_| sum)
            })
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(8.0, 8.0)
            .gradient(&[0]),
        Case::new("linalg_diagonal", "torch.linalg.diagonal(a)", [any(&[2, 3, 4])])
            .run(|t| t[0].linalg_diagonal(0, -2, -1))
            .oracle(|x| {
                let mut result = Array::zeros(x.dtype, &[2, 3]);
                for i in indices(&[2, 3]) {
                    result.set(&i, x[0].at(&[i[0], i[1], i[1]]));
                }
                result
            })
            .gradient(&[0]),
        Case::new("linalg_vander", "torch.linalg.vander(a, N=3)", [any(&[2, 3])])
            .run(|t| t[0].linalg_vander(Some(3)))
            .oracle(|x| {
                let dtype = if x.dtype.is_float() { x.dtype } else { DType::I64 };
                Array::build(dtype, &[2, 3, 3], |i| x[0].at(&i[..2]).to_f64().powi(i[2] as i32))
            })
            .dtypes(&VANDER)
            .taking_only_these()
            .tolerance(8.0, 0.0)
            .brief()
            .gradient(&[0]),
        power("matrix_power", "torch.matrix_power(a, 3)").run(|t| t[0].matrix_power(3)),
        power("linalg_matrix_power", "torch.linalg.matrix_power(a, 3)")
            .run(|t| t[0].linalg_matrix_power(3)),
    ]
}
