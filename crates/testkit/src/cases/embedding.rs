//! Rows of a table by index, and bags of them.

use plimsoll_core::DType;
use plimsoll_tensor::{BagMode, Device, EmbeddingBagOptions, EmbeddingOptions, Tensor};

use super::input::{any, below, distinct};
use super::{Case, FLOATS};
use crate::oracle::embedding::{bag, embedding};

pub(super) fn cases() -> Vec<Case> {
    let row = |shape: &[usize]| {
        Case::new(
            "embedding",
            "torch.nn.functional.embedding(b, a)",
            [any(&[5, 3]), below(5, shape)],
        )
        .run(|t| t[0].embedding(&t[1]))
        .oracle(|x| embedding(&x[0], &x[1]))
    };
    let mut rows = vec![
        row(&[4]).gradient(&[0]),
        row(&[2, 3]).gradient(&[0]),
        row(&[]),
        row(&[0]).plain(),
        Case::new(
            "embedding",
            "torch.nn.functional.embedding(b, a, padding_idx=2)",
            [any(&[5, 3]), below(5, &[7])],
        )
        .run(|t| t[0].embedding_with(&t[1], EmbeddingOptions::new().padding_idx(2)))
        .oracle(|x| embedding(&x[0], &x[1]))
        .brief(),
        Case::new(
            "embedding",
            "torch.nn.functional.embedding(b.int(), a)",
            [any(&[5, 3]), below(5, &[7])],
        )
        .run(|t| t[0].embedding(&t[1].to(DType::I32)?))
        .oracle(|x| embedding(&x[0], &x[1]))
        .brief(),
    ];
    rows.extend(bags());
    rows
}

fn bags() -> Vec<Case> {
    let starts = |t: &super::Inputs| -> plimsoll_core::Result<Tensor> {
        Tensor::from_slice(&[0i64, 2, 2], &[3], Device::cpu())?.to(t.device)
    };
    let mut rows = Vec::new();
    for (mode, word) in [(BagMode::Sum, "sum"), (BagMode::Mean, "mean"), (BagMode::Max, "max")] {
        let options = EmbeddingBagOptions::new().bag_mode(mode).padding_idx(1);
        rows.push(
            Case::new(
                "embedding_bag",
                format!(
                    "torch.nn.functional.embedding_bag(b, a, torch.tensor([0, 2, 2]), mode='{word}', padding_idx=1)"
                ),
                [distinct(&[4, 3]), below(4, &[7])],
            )
            .run(move |t| t[0].embedding_bag_with(&t[1], &starts(t)?, options.clone()))
            .oracle(move |x| bag(&x[0], &x[1], &[0, 2, 2], mode, None, Some(1)))
            .gradient(&[0])
            .once(),
        );
    }
    rows.push(
        Case::new(
            "embedding_bag",
            "torch.nn.functional.embedding_bag(b, a, torch.tensor([0, 2, 2]), mode='sum', per_sample_weights=c)",
            [any(&[4, 3]), below(4, &[7]), any(&[7])],
        )
        .run(move |t| {
            let options =
                EmbeddingBagOptions::new().bag_mode(BagMode::Sum).per_sample_weights(&t[2]);
            t[0].embedding_bag_with(&t[1], &starts(t)?, options)
        })
        .oracle(|x| bag(&x[0], &x[1], &[0, 2, 2], BagMode::Sum, Some(&x[2]), None))
        .gradient(&[0, 2])
        .once(),
    );
    rows.into_iter()
        .map(|row| row.dtypes(&FLOATS).taking_only_these().tolerance(16.0, 8.0))
        .collect()
}
