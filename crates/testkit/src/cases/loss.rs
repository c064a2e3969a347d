//! Losses of elements and of classes.

use plimsoll_tensor::{
    BinaryCrossEntropyOptions, BinaryCrossEntropyWithLogitsOptions, CrossEntropyOptions,
    CtcLossOptions, HuberLossOptions, L1LossOptions, MseLossOptions, NllLossOptions, Reduction,
    SmoothL1LossOptions,
};

use super::input::{any, below, distinct, positive};
use super::{Case, FLOATS};
use crate::oracle::ctc::ctc_loss;
use crate::oracle::loss::{Classes, classes, elements};
use crate::oracle::unary;

const REDUCTIONS: [(Reduction, &str); 3] =
    [(Reduction::None, "none"), (Reduction::Mean, "mean"), (Reduction::Sum, "sum")];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = of_elements();
    cases.extend(of_probabilities());
    cases.extend(of_classes());
    cases.extend(of_target_probabilities());
    cases.extend(of_sequences());
    cases
}

fn floats(case: Case) -> Case {
    case.dtypes(&FLOATS).taking_only_these().tolerance(32.0, 4.0)
}

fn of_elements() -> Vec<Case> {
    let mut rows = Vec::new();
    for (reduction, word) in REDUCTIONS {
        let call = |name: &str, more: &str| {
            format!("torch.nn.functional.{name}(a, b, reduction='{word}'{more})")
        };
        let inputs = || [any(&[3, 5]), any(&[3, 5])];
        let mse = MseLossOptions::new().reduction(reduction);
        let l1 = L1LossOptions::new().reduction(reduction);
        let smooth = SmoothL1LossOptions::new().reduction(reduction).beta(0.5);
        let huber = HuberLossOptions::new().reduction(reduction).delta(1.5);
        let logits = BinaryCrossEntropyWithLogitsOptions::new().reduction(reduction);
        rows.push(
            Case::new("mse_loss", call("mse_loss", ""), inputs())
                .run(move |t| t[0].mse_loss_with(&t[1], mse.clone()))
                .oracle(move |x| elements(&x[0], &x[1], reduction, |x, y| (x - y) * (x - y))),
        );
        rows.push(
            Case::new("l1_loss", call("l1_loss", ""), inputs())
                .run(move |t| t[0].l1_loss_with(&t[1], l1.clone()))
                .oracle(move |x| elements(&x[0], &x[1], reduction, |x, y| (x - y).abs())),
        );
        rows.push(
            Case::new("smooth_l1_loss", call("smooth_l1_loss", ", beta=0.5"), inputs())
                .run(move |t| t[0].smooth_l1_loss_with(&t[1], smooth.clone()))
                .oracle(move |x| {
                    elements(&x[0], &x[1], reduction, |x, y| {
                        let d = (x - y).abs();
                        if d < 0.5 { d * d } else { d - 0.25 }
                    })
                }),
        );
        rows.push(
            Case::new("huber_loss", call("huber_loss", ", delta=1.5"), inputs())
                .run(move |t| t[0].huber_loss_with(&t[1], huber.clone()))
                .oracle(move |x| {
                    elements(&x[0], &x[1], reduction, |x, y| {
                        let d = (x - y).abs();
                        if d <= 1.5 { d * d / 2.0 } else { 1.5 * (d - 0.75) }
                    })
                }),
        );
        rows.push(
            Case::new(
                "binary_cross_entropy_with_logits",
                call("binary_cross_entropy_with_logits", ""),
                inputs(),
            )
            .run(move |t| t[0].binary_cross_entropy_with_logits_with(&t[1], logits.clone()))
            .oracle(move |x| elements(&x[0], &x[1], reduction, logit_loss)),
        );
    }
    rows.into_iter().map(|row| floats(row).gradient(&[0, 1])).collect()
}

/// Minus the log-likelihood of a target under the probability of a logit.
fn logit_loss(x: f64, target: f64) -> f64 {
    x.max(0.0) - x * target + (-x.abs()).exp().ln_1p()
}

fn of_probabilities() -> Vec<Case> {
    let by_probability = |x: f64, target: f64| {
        -(target * x.ln().max(-100.0) + (1.0 - target) * (-x).ln_1p().max(-100.0))
    };
    let row = |reduction: Reduction, word: &str| {
        let options = BinaryCrossEntropyOptions::new().reduction(reduction);
        Case::new(
            "binary_cross_entropy",
            format!(
                "torch.nn.functional.binary_cross_entropy(torch.sigmoid(a), torch.sigmoid(b), reduction='{word}')"
            ),
            [any(&[3, 5]), any(&[3, 5])],
        )
        .run(move |t| t[0].sigmoid()?.binary_cross_entropy_with(&t[1].sigmoid()?, options.clone()))
        .oracle(move |x| {
            let (x, target) = (unary::float(&x[0], unary::sigmoid), unary::float(&x[1], unary::sigmoid));
            elements(&x, &target, reduction, by_probability)
        })
    };
    let mut rows: Vec<Case> = REDUCTIONS
        .into_iter()
        .map(|(reduction, word)| floats(row(reduction, word)).gradient(&[0, 1]))
        .collect();
    rows.push(
        floats(
            Case::new(
                "binary_cross_entropy",
                "torch.nn.functional.binary_cross_entropy(torch.sigmoid(a), torch.sigmoid(b), c)",
                [any(&[3, 5]), any(&[3, 5]), positive(&[5])],
            )
            .run(|t| {
                let options = BinaryCrossEntropyOptions::new().weight(&t[2]);
                t[0].sigmoid()?.binary_cross_entropy_with(&t[1].sigmoid()?, options)
            })
            .oracle(move |x| {
                let (p, target) =
                    (unary::float(&x[0], unary::sigmoid), unary::float(&x[1], unary::sigmoid));
                let each = elements(&p, &target, Reduction::None, by_probability);
                elements(&each, &x[2], Reduction::Mean, |loss, weight| loss * weight)
            }),
        )
        .brief(),
    );
    rows.push(
        floats(
            Case::new(
                "binary_cross_entropy_with_logits",
                "torch.nn.functional.binary_cross_entropy_with_logits(a, b, pos_weight=c, reduction='none')",
                [any(&[3, 5]), any(&[3, 5]), positive(&[3, 5])],
            )
            .run(|t| {
                let options = BinaryCrossEntropyWithLogitsOptions::new()
                    .pos_weight(&t[2])
                    .reduction(Reduction::None);
                t[0].binary_cross_entropy_with_logits_with(&t[1], options)
            })
            .oracle(|x| {
                crate::oracle::Array::build(x[0].dtype(), x[0].shape(), |i| {
                    let [a, b, c] = [0, 1, 2].map(|input| x[input].at(i).to_f64());
                    (1.0 - b) * a + ((c - 1.0) * b + 1.0) * logit_loss(a, 1.0)
                })
            }),
        )
        .tolerance(32.0, 64.0)
        .brief(),
    );
    rows
}

fn of_classes() -> Vec<Case> {
    let mut rows = Vec::new();
    let shapes: [(&[usize], &[usize]); 4] =
        [(&[4, 5], &[4]), (&[5], &[]), (&[2, 5, 3], &[2, 3]), (&[2, 5, 3, 70], &[2, 3, 70])];
    for (at, (shape, targets)) in shapes.into_iter().enumerate() {
        for (reduction, word) in REDUCTIONS {
            let small = at < 3;
            let by =
                Classes { weight: None, reduction, ignore_index: 1, smoothing: 0.0, scores: false };
            let nll = NllLossOptions::new().reduction(reduction).ignore_index(1);
            let entropy = CrossEntropyOptions::new().reduction(reduction).ignore_index(1);
            let finish = |case: Case| {
                let case = floats(case).tolerance(64.0, 8.0);
                if small { case.gradient(&[0]) } else { case.plain() }
            };
            // The mean of no rows at all is NaN, and its gradient 0.
            let ignoring = |case: Case| match at < 2 && word == "mean" {
                true => finish(case).gradient(&[]),
                false => finish(case),
            };
            rows.push(ignoring(
                Case::new(
                    "nll_loss",
                    format!(
                        "torch.nn.functional.nll_loss(a, b, reduction='{word}', ignore_index=1)"
                    ),
                    [any(shape), below(5, targets)],
                )
                .run(move |t| t[0].nll_loss_with(&t[1], nll.clone()))
                .oracle(move |x| classes(&x[0], &x[1], by)),
            ));
            rows.push(ignoring(
                Case::new(
                    "cross_entropy",
                    format!("torch.nn.functional.cross_entropy(a, b, reduction='{word}', ignore_index=1)"),
                    [any(shape), below(5, targets)],
                )
                .run(move |t| t[0].cross_entropy_with(&t[1], entropy.clone()))
                .oracle(move |x| classes(&x[0], &x[1], Classes { scores: true, ..by })),
            ));
            rows.push(finish(
                Case::new(
                    "cross_entropy",
                    format!(
                        "torch.nn.functional.cross_entropy(a, b, c, reduction='{word}', label_smoothing=0.25)"
                    ),
                    [any(shape), below(5, targets), positive(&[5])],
                )
                .run(move |t| {
                    let options = CrossEntropyOptions::new()
                        .weight(&t[2])
                        .reduction(reduction)
                        .label_smoothing(0.25);
                    t[0].cross_entropy_with(&t[1], options)
                })
                .oracle(move |x| {
                    let weight = Some(&x[2]);
                    let by = Classes { weight, ignore_index: -100, smoothing: 0.25, ..by };
                    classes(&x[0], &x[1], Classes { scores: true, ..by })
                }),
            ));
            rows.push(finish(
                Case::new(
                    "nll_loss",
                    format!("torch.nn.functional.nll_loss(a, b, c, reduction='{word}')"),
                    [any(shape), below(5, targets), positive(&[5])],
                )
                .run(move |t| {
                    let options = NllLossOptions::new().weight(&t[2]).reduction(reduction);
                    t[0].nll_loss_with(&t[1], options)
                })
                .oracle(move |x| {
                    let weight = Some(&x[2]);
                    classes(&x[0], &x[1], Classes { weight, ignore_index: -100, ..by })
                }),
            ));
        }
    }
    // Longer than a buffer of the kernel, and more rows than a unit.
    rows.push(
        floats(
            Case::new(
                "cross_entropy",
                "torch.nn.functional.cross_entropy(a, b)",
                [distinct(&[3, 5000]), below(5000, &[3])],
            )
            .run(|t| t[0].cross_entropy(&t[1]))
            .oracle(|x| {
                let by = Classes {
                    weight: None,
                    reduction: Reduction::Mean,
                    ignore_index: -100,
                    smoothing: 0.0,
                    scores: true,
                };
                classes(&x[0], &x[1], by)
            }),
        )
        .plain(),
    );
    rows
}

fn of_target_probabilities() -> Vec<Case> {
    let rows = REDUCTIONS.into_iter().map(|(reduction, word)| {
        floats(
            Case::new(
                "cross_entropy",
                format!(
                    "torch.nn.functional.cross_entropy(a, b, reduction='{word}', label_smoothing=0.5)"
                ),
                [any(&[3, 4]), any(&[3, 4])],
            )
            .run(move |t| {
                let options =
                    CrossEntropyOptions::new().reduction(reduction).label_smoothing(0.5);
                t[0].cross_entropy_with(&t[1], options)
            })
            .oracle(move |x| {
                let log = crate::oracle::nn::log_softmax(&x[0].cast(plimsoll_core::DType::F64), 1);
                let row = |i: usize| {
                    let each = |c: usize| {
                        -log.at(&[i, c]).to_f64() * (x[1].at(&[i, c]).to_f64() * 0.5 + 0.125)
                    };
                    (0..4).map(each).sum::<f64>()
                };
                let dtype = x[0].dtype();
                let total: f64 = (0..3).map(row).sum();
                match reduction {
                    Reduction::None => crate::oracle::Array::build(dtype, &[3], |i| row(i[0])),
                    Reduction::Sum => crate::oracle::Array::build(dtype, &[], |_| total),
                    Reduction::Mean => crate::oracle::Array::build(dtype, &[], |_| total / 3.0),
                }
            }),
        )
        .tolerance(128.0, 32.0)
        .gradient(&[0, 1])
        .brief()
    });
    rows.collect()
}

fn of_sequences() -> Vec<Case> {
    const STEPS: [i64; 2] = [4, 3];
    const LABELS: [i64; 2] = [2, 1];
    let rows = REDUCTIONS.into_iter().map(|(reduction, word)| {
        let options = CtcLossOptions::new().reduction(reduction);
        Case::new(
            "ctc_loss",
            format!(
                "torch.nn.functional.ctc_loss(torch.log_softmax(a, 2), b % 2 + 1, [4, 3], [2, 1], reduction='{word}')"
            ),
            [any(&[4, 2, 3]), below(2, &[2, 2])],
        )
        .run(move |t| {
            let targets = t[1].add(1)?;
            t[0].log_softmax(2)?.ctc_loss_with(&targets, &STEPS, &LABELS, options.clone())
        })
        .oracle(move |x| {
            let x64 = x[0].cast(plimsoll_core::DType::F64);
            let log_probs = crate::oracle::nn::log_softmax(&x64, 2);
            let each: Vec<f64> = (0..2)
                .map(|sequence| {
                    let labels: Vec<i64> = (0..LABELS[sequence] as usize)
                        .map(|at| x[1].at(&[sequence, at]).to_i64() + 1)
                        .collect();
                    ctc_loss(&log_probs, sequence, STEPS[sequence] as usize, &labels)
                })
                .collect();
            let dtype = x[0].dtype();
            match reduction {
                Reduction::None => crate::oracle::Array::build(dtype, &[2], |i| each[i[0]]),
                Reduction::Sum => crate::oracle::Array::build(dtype, &[], |_| each[0] + each[1]),
                Reduction::Mean => crate::oracle::Array::build(dtype, &[], |_| {
                    (each[0] / 2.0 + each[1]) / 2.0
                }),
            }
        })
        .dtypes(&[plimsoll_core::DType::F32, plimsoll_core::DType::F64])
        .taking_only_these()
        .tolerance(256.0, 8.0)
        .brief()
        .gradient(&[0])
        .once()
    });
    rows.collect()
}
