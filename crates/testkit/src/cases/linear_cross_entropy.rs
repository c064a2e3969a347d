//! Cross entropy of a linear map's results.

use plimsoll_tensor::{LinearCrossEntropyOptions as Options, Reduction};

use super::input::{any, below, positive};
use super::{Arrays, Case, FLOATS};
use crate::oracle::Array;
use crate::oracle::loss::{Classes, classes};

/// The scores, `x w^T + bias`.
fn scores(x: &Arrays, biased: bool) -> Array {
    let (input, weight) = (&x[0], &x[1]);
    let width = weight.shape()[1];
    let shape = [input.shape()[0], weight.shape()[0]];
    Array::build(plimsoll_core::DType::F64, &shape, |i| {
        let product = |k: usize| input.at(&[i[0], k]).to_f64() * weight.at(&[i[1], k]).to_f64();
        let bias = if biased { x[3].at(&[i[1]]).to_f64() } else { 0.0 };
        (0..width).map(product).sum::<f64>() + bias
    })
}

pub(super) fn cases() -> Vec<Case> {
    let reductions =
        [(Reduction::Mean, "mean"), (Reduction::Sum, "sum"), (Reduction::None, "none")];
    let mut rows = Vec::new();
    for (reduction, word) in reductions {
        let call = |more: &str| {
            format!("torch.nn.functional.linear_cross_entropy(a, b, c, reduction='{word}'{more})")
        };
        let expected = move |x: &Arrays, biased: bool, by: Classes<'_>| {
            classes(&scores(x, biased), &x[2], by).cast(x[0].dtype())
        };
        let by =
            Classes { weight: None, reduction, ignore_index: -100, smoothing: 0.0, scores: true };
        let finish = |case: Case| {
            case.dtypes(&FLOATS).taking_only_these().row_major().tolerance(256.0, 64.0)
        };
        rows.push(
            finish(
                Case::new(
                    "linear_cross_entropy",
                    call(""),
                    [any(&[3, 4]), any(&[5, 4]), below(5, &[3])],
                )
                .run(move |t| {
                    let options = Options::new().reduction(reduction);
                    t[0].linear_cross_entropy_with(&t[1], &t[2], options)
                })
                .oracle(move |x| expected(x, false, by)),
            )
            .gradient(&[0, 1]),
        );
        rows.push(
            finish(
                Case::new(
                    "linear_cross_entropy",
                    call(", linear_bias=d, weight=e, ignore_index=1, label_smoothing=0.25"),
                    [any(&[4, 3]), any(&[5, 3]), below(5, &[4]), any(&[5]), positive(&[5])],
                )
                .run(move |t| {
                    let options = Options::new()
                        .reduction(reduction)
                        .linear_bias(&t[3])
                        .weight(&t[4])
                        .ignore_index(1)
                        .label_smoothing(0.25);
                    t[0].linear_cross_entropy_with(&t[1], &t[2], options)
                })
                .oracle(move |x| {
                    let by =
                        Classes { weight: Some(&x[4]), ignore_index: 1, smoothing: 0.25, ..by };
                    expected(x, true, by)
                }),
            )
            .brief()
            .gradient(&[0, 1, 3]),
        );
    }
    rows
}
