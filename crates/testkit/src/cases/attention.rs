//! Attention.

use plimsoll_core::DType;
use plimsoll_tensor::ScaledDotProductAttentionOptions as Options;

use super::input::any;
use super::{Case, FLOATS};
use crate::oracle::attention::{added, attention};

pub(super) fn cases() -> Vec<Case> {
    let call =
        |more: &str| format!("torch.nn.functional.scaled_dot_product_attention(a, b, c{more})");
    let inputs = || [any(&[2, 3, 4]), any(&[2, 5, 4]), any(&[2, 5, 3])];
    let finish = |case: Case| case.dtypes(&FLOATS).taking_only_these().tolerance(64.0, 8.0);
    let root = |width: f64| 1.0 / width.sqrt();
    let mut rows = vec![
        finish(
            Case::new("scaled_dot_product_attention", call(""), inputs())
                .run(|t| t[0].scaled_dot_product_attention(&t[1], &t[2]))
                .oracle(move |x| attention(&x[0], &x[1], &x[2], root(4.0), 1, |_, _, _| 0.0)),
        )
        .gradient(&[0, 1, 2]),
        finish(
            Case::new(
                "scaled_dot_product_attention",
                call(", is_causal=True, scale=0.25"),
                [any(&[2, 5, 4]), any(&[2, 5, 4]), any(&[2, 5, 3])],
            )
            .run(|t| {
                let options = Options::new().is_causal(true).scale(0.25);
                t[0].scaled_dot_product_attention_with(&t[1], &t[2], options)
            })
            .oracle(|x| {
                attention(&x[0], &x[1], &x[2], 0.25, 1, |_, row, key| {
                    if key > row { f64::NEG_INFINITY } else { 0.0 }
                })
            }),
        )
        .gradient(&[0, 1, 2]),
        finish(
            Case::new(
                "scaled_dot_product_attention",
                call(", enable_gqa=True"),
                [any(&[2, 4, 3, 4]), any(&[2, 2, 5, 4]), any(&[2, 2, 5, 3])],
            )
            .run(|t| {
                let options = Options::new().enable_gqa(true);
                t[0].scaled_dot_product_attention_with(&t[1], &t[2], options)
            })
            .oracle(move |x| attention(&x[0], &x[1], &x[2], root(4.0), 2, |_, _, _| 0.0)),
        )
        .gradient(&[0, 1, 2]),
        // Several blocks of queries and keys.
        finish(
            Case::new(
                "scaled_dot_product_attention",
                call(", is_causal=True"),
                [any(&[1, 600, 3]), any(&[1, 600, 3]), any(&[1, 600, 2])],
            )
            .run(|t| {
                let options = Options::new().is_causal(true);
                t[0].scaled_dot_product_attention_with(&t[1], &t[2], options)
            })
            .oracle(move |x| {
                attention(&x[0], &x[1], &x[2], root(3.0), 1, |_, row, key| {
                    if key > row { f64::NEG_INFINITY } else { 0.0 }
                })
            }),
        )
        .plain(),
    ];
    for mask in [any(&[3, 5]), any(&[3, 5]).of(DType::Bool)] {
        let [a, b, c] = inputs();
        let case =
            Case::new("scaled_dot_product_attention", call(", attn_mask=d"), [a, b, c, mask])
                .run(|t| {
                    let options = Options::new().attn_mask(&t[3]);
                    t[0].scaled_dot_product_attention_with(&t[1], &t[2], options)
                })
                .oracle(move |x| {
                    let mask = added(&x[3]);
                    attention(&x[0], &x[1], &x[2], root(4.0), 1, |_, row, key| mask[row * 5 + key])
                });
        rows.push(finish(case).brief().gradient(&[0, 1, 2]));
    }
    rows
}
