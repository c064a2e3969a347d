//! Softmax, layer and group norms, and dropout.

use super::input::{Input, any, positive, special};
use super::random::{SEED, seeded};
use super::{Case, FLOATS};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{nn, random};
use plimsoll_tensor::{GroupNormOptions, LayerNormOptions, SoftmaxOptions};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = softmax();
    cases.extend(layer_norm());
    cases.extend(group_norm());
    cases.extend(dropout());
    cases
}

fn softmax() -> Vec<Case> {
    let row = |input: Input, dim: i64| {
        Case::new("softmax", format!("torch.softmax(a, {dim})"), [input])
            .run(move |t| t[0].softmax(dim))
            .oracle(move |x| nn::softmax(&x[0], dim))
            .dtypes(&FLOATS)
            .tolerance(8.0, 0.0)
    };
    let log_row = |input: Input, dim: i64| {
        Case::new("log_softmax", format!("torch.log_softmax(a, {dim})"), [input])
            .run(move |t| t[0].log_softmax(dim))
            .oracle(move |x| nn::log_softmax(&x[0], dim))
            .dtypes(&FLOATS)
            .tolerance(8.0, 4.0)
    };
    let mut rows = Vec::new();
    for dim in [0, 1, -1] {
        rows.push(row(any(&[2, 3, 4]), dim).gradient(&[0]));
        rows.push(log_row(any(&[2, 3, 4]), dim).gradient(&[0]));
    }
    // PyTorch computes empty ones in any dtype; Plimsoll's dtypes do not depend on sizes.
    rows.extend([
        row(any(&[]), 0).only(&[Contiguous, Offset]).gradient(&[0]),
        log_row(any(&[]), -1).only(&[Contiguous, Offset]).gradient(&[0]),
        row(any(&[0, 3]), 1).plain().taking_only_these(),
        log_row(any(&[0, 3]), 0).plain().taking_only_these(),
        row(any(&[3, 0]), 1).plain().taking_only_these(),
        row(any(&[5, 131]), 1).brief(),
        row(any(&[131, 5]), 0).brief(),
        log_row(any(&[5, 131]), 1).brief(),
        Case::new("softmax", "torch.softmax(a, 1, out=b)", [any(&[3, 4]), any(&[3, 4])])
            .writes(1, |t| t[0].softmax_with_out(1, SoftmaxOptions::new(), &t[1]))
            .oracle(|x| nn::softmax(&x[0], 1))
            .dtypes(&FLOATS)
            .tolerance(8.0, 0.0)
            .only(&[Contiguous, Transposed, Stepped]),
        Case::new("log_softmax", "torch.log_softmax(a, 0, out=b)", [any(&[3, 4]), any(&[3, 4])])
            .writes(1, |t| t[0].log_softmax_with_out(0, SoftmaxOptions::new(), &t[1]))
            .oracle(|x| nn::log_softmax(&x[0], 0))
            .dtypes(&FLOATS)
            .tolerance(8.0, 4.0)
            .only(&[Contiguous, Transposed, Stepped]),
        row(special(&[4, 17]), 0).plain(),
        log_row(special(&[4, 17]), 0).plain(),
    ]);
    rows
}

fn layer_norm() -> Vec<Case> {
    let floats = |case: Case| case.dtypes(&FLOATS).tolerance(32.0, 8.0);
    let whole = |shape: &[usize], inner: &[usize]| {
        let normalized: Vec<i64> = inner.iter().map(|&n| n as i64).collect();
        let count = inner.len();
        floats(
            Case::new(
                "layer_norm",
                format!("torch.nn.functional.layer_norm(a, {inner:?}, b, c, 1e-5)"),
                [any(shape), positive(inner), any(inner)],
            )
            .run(move |t| {
                t[0].layer_norm_with(&normalized, LayerNormOptions::new().weight(&t[1]).bias(&t[2]))
            })
            .oracle(move |x| nn::layer_norm(&x[0], count, Some(&x[1]), Some(&x[2]), 1e-5)),
        )
    };
    vec![
        whole(&[2, 3, 4], &[4]).gradient(&[0, 1, 2]),
        whole(&[2, 3, 4], &[3, 4]).gradient(&[0, 1, 2]),
        // Not expanded: without any variance the result is rounding errors over the root of eps.
        whole(&[5], &[5]).only(&[Contiguous, Stepped, Offset]).gradient(&[0, 1, 2]),
        whole(&[0, 4], &[4]).plain(),
        whole(&[7, 131], &[131]).brief(),
        floats(
            Case::new("layer_norm", "torch.nn.functional.layer_norm(a, [4])", [any(&[2, 3, 4])])
                .run(|t| t[0].layer_norm(&[4]))
                .oracle(|x| nn::layer_norm(&x[0], 1, None, None, 1e-5)),
        )
        .gradient(&[0]),
        floats(
            Case::new(
                "layer_norm",
                "torch.nn.functional.layer_norm(a, [4], b, eps=1e-3)",
                [any(&[3, 4]), any(&[4])],
            )
            .run(|t| t[0].layer_norm_with(&[4], LayerNormOptions::new().weight(&t[1]).eps(1e-3)))
            .oracle(|x| nn::layer_norm(&x[0], 1, Some(&x[1]), None, 1e-3)),
        )
        .gradient(&[0, 1]),
    ]
}

fn group_norm() -> Vec<Case> {
    let row = |shape: &[usize], groups: i64| {
        let channels = [shape[1]];
        Case::new(
            "group_norm",
            format!("torch.nn.functional.group_norm(a, {groups}, b, c, 1e-5)"),
            [any(shape), positive(&channels), any(&channels)],
        )
        .run(move |t| {
            t[0].group_norm_with(groups, GroupNormOptions::new().weight(&t[1]).bias(&t[2]))
        })
        .oracle(move |x| nn::group_norm(&x[0], groups as usize, Some(&x[1]), Some(&x[2]), 1e-5))
        .dtypes(&FLOATS)
        .taking_only_these()
        .row_major()
        .tolerance(64.0, 16.0)
    };
    // Not expanded: without any variance the result is rounding errors over the root of eps.
    let layouts = [Contiguous, Stepped, Offset, Transposed];
    vec![
        row(&[2, 4, 3], 2).only(&layouts).gradient(&[0, 1, 2]),
        row(&[2, 6, 2, 3], 3).only(&layouts).gradient(&[0, 1, 2]),
        row(&[3, 4], 1).only(&layouts).gradient(&[0, 1, 2]),
        row(&[1, 2, 700], 2).plain(),
        Case::new("group_norm", "torch.nn.functional.group_norm(a, 2)", [any(&[2, 4, 3])])
            .run(|t| t[0].group_norm(2))
            .oracle(|x| nn::group_norm(&x[0], 2, None, None, 1e-5))
            .dtypes(&FLOATS)
            .taking_only_these()
            .row_major()
            .tolerance(64.0, 16.0)
            .only(&layouts)
            .gradient(&[0]),
    ]
}

fn dropout() -> Vec<Case> {
    let row = |p: f64, training: bool, kept: bool| {
        let asked = if training { "True" } else { "False" };
        Case::new(
            "dropout",
            format!("torch.nn.functional.dropout(a, {p:?}, {asked})"),
            [any(&[3, 4])],
        )
        .run(move |t| t[0].dropout(p, training))
        .oracle(move |x| {
            let applied = if training { p } else { 0.0 };
            nn::dropout(&x[0], &vec![kept; x[0].numel()], if kept { applied } else { 0.0 })
        })
        .dtypes(&FLOATS)
        .taking_only_these()
        .gradient(&[0])
    };
    let masked = |p: f64| {
        Case::new(
            "dropout",
            format!("torch.nn.functional.dropout(a, {p:?}, True)"),
            [any(&[2, 3, 5])],
        )
        .run(move |t| seeded(t, || t[0].dropout(p, true)))
        .oracle(move |x| nn::dropout(&x[0], &random::kept(x[0].numel(), p, SEED), p))
        .dtypes(&FLOATS)
        .taking_only_these()
        .gradient(&[0])
        .random()
    };
    vec![
        row(0.5, false, true),
        row(0.0, true, true),
        row(1.0, true, false),
        masked(0.5),
        masked(0.2),
        Case::new("dropout", "torch.nn.functional.dropout(a, 0.5, True, True)", [any(&[2, 3, 5])])
            .writes(0, |t| seeded(t, || t[0].dropout_(0.5, true).map(|_| ())))
            .oracle(|x| nn::dropout(&x[0], &random::kept(x[0].numel(), 0.5, SEED), 0.5))
            .dtypes(&FLOATS)
            .taking_only_these()
            .gradient(&[0])
            .random(),
    ]
}
