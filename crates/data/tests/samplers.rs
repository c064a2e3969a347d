//! Samplers and parts of datasets: who is drawn, how often, and what is refused. Distributions are
//! held to the chi-square test at a probability of one in a million, by fixed seeds.

use std::sync::Arc;

use plimsoll_data::*;
use plimsoll_tensor::{DType, Result, Tensor};
use proptest::prelude::*;

type Outcome = Result<()>;

fn drawn<T>(sampler: &impl Sampler<Item = T>, epoch: u64) -> Vec<T> {
    sampler.order(epoch).unwrap().map(Result::unwrap).collect()
}

/// How far counts are from what was expected.
fn chi_square(counts: &[usize], expected: &[f64]) -> f64 {
    counts.iter().zip(expected).map(|(&n, &e)| (n as f64 - e).powi(2) / e).sum()
}

#[test]
fn every_place_of_a_shuffle_is_as_likely_for_every_sample() -> Outcome {
    const SAMPLES: usize = 5;
    const EPOCHS: u64 = 4000;
    let sampler = RandomSampler::new(SAMPLES, 11)?;
    let mut counts = [0; SAMPLES * SAMPLES];
    for epoch in 0..EPOCHS {
        let order = drawn(&sampler, epoch);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
        order.iter().enumerate().for_each(|(place, sample)| counts[place * SAMPLES + sample] += 1);
    }
    let far = chi_square(&counts, &[EPOCHS as f64 / SAMPLES as f64; SAMPLES * SAMPLES]);
    // 16 degrees of freedom; 60 is past one in a million.
    assert!(far < 60.0, "{far}: {counts:?}");
    Ok(())
}

#[test]
fn draws_with_replacement_are_uniform_and_more_than_all_go_round() -> Outcome {
    let sampler = RandomSampler::new(8, 3)?.replacement(true).num_samples(8000)?;
    let mut counts = [0; 8];
    drawn(&sampler, 0).into_iter().for_each(|at| counts[at] += 1);
    let far = chi_square(&counts, &[1000.0; 8]);
    assert!(far < 40.0, "{far}: {counts:?}");

    let twice = RandomSampler::new(3, 3)?.num_samples(7)?;
    let order = drawn(&twice, 0);
    assert_eq!((order.len(), twice.len()), (7, 7));
    for round in order.chunks(3).take(2) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2], "every sample once before any comes twice");
    }
    assert!(RandomSampler::new(0, 0).is_err() && RandomSampler::new(1, 0)?.num_samples(0).is_err());
    Ok(())
}

#[test]
fn weights_decide_how_often_a_sample_is_drawn() -> Outcome {
    let weights = [1.0, 0.0, 2.0, 5.0];
    let sampler = WeightedRandomSampler::new(&weights, 8000, true, 5)?;
    let mut counts = [0; 4];
    drawn(&sampler, 1).into_iter().for_each(|at| counts[at] += 1);
    assert_eq!(counts[1], 0);
    let far = chi_square(&[counts[0], counts[2], counts[3]], &[1000.0, 2000.0, 5000.0]);
    assert!(far < 28.0, "{far}: {counts:?}");

    // Without replacement, the first of two: 1/8, 2/8, 5/8.
    let mut first = [0; 4];
    for epoch in 0..2000 {
        let sampler = WeightedRandomSampler::new(&weights, 2, false, 6)?;
        let pair = drawn(&sampler, epoch);
        assert!(pair.len() == 2 && pair[0] != pair[1] && !pair.contains(&1));
        first[pair[0]] += 1;
    }
    let far = chi_square(&[first[0], first[2], first[3]], &[250.0, 500.0, 1250.0]);
    assert!(far < 28.0, "{far}: {first:?}");
    for bad in [
        WeightedRandomSampler::new(&weights, 4, false, 0),
        WeightedRandomSampler::new(&[0.0], 1, true, 0),
        WeightedRandomSampler::new(&[1.0, -1.0], 1, true, 0),
        WeightedRandomSampler::new(&[f64::NAN], 1, true, 0),
        WeightedRandomSampler::new(&[1.0], 0, true, 0),
    ] {
        assert!(bad.unwrap_err().is_invalid_argument());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn batches_by_length_hold_every_sample_once_and_neighbours_in_length(
        lengths in proptest::collection::vec(0usize..50, 0..200),
        batch_size in 1usize..7,
        bucket_batches in 1usize..9,
        drop_last in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let options = LengthOptions { batch_size, bucket_batches, drop_last, seed };
        let sampler = LengthSampler::new(lengths.clone(), options).unwrap();
        let batches = drawn(&sampler, 0);
        prop_assert_eq!(batches.len(), sampler.len());
        let mut seen: Vec<usize> = batches.concat();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), batches.concat().len());
        if drop_last {
            prop_assert!(batches.iter().all(|batch| batch.len() == batch_size));
        } else {
            prop_assert_eq!(seen.len(), lengths.len());
        }
        // Within a bucket no sample of another batch lies between the lengths of a batch.
        for bucket in batches.chunks(bucket_batches) {
            for batch in bucket {
                let of = |at: &usize| lengths[*at];
                let (low, high) = (batch.iter().map(of).min().unwrap(), batch.iter().map(of).max().unwrap());
                let others = bucket.iter().filter(|other| *other != batch).flatten();
                prop_assert!(others.map(of).all(|length| length <= low || length >= high));
            }
        }
    }

    #[test]
    fn fractions_split_as_in_pytorch(len in 0usize..500, cut in 0.0f64..1.0, seed in any::<u64>()) {
        let all = Arc::new(InMemory((0..len).collect::<Vec<usize>>()));
        let parts = random_split(all, [cut, 1.0 - cut], seed).unwrap();
        let (a, b) = ((len as f64 * cut).floor() as usize, (len as f64 * (1.0 - cut)).floor() as usize);
        let left = len - a - b;
        prop_assert_eq!(parts[0].len(), a + left.div_ceil(2));
        prop_assert_eq!(parts[1].len(), b + left / 2);
        let mut seen: Vec<usize> = parts.iter().flat_map(|part| part.indices().to_vec()).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..len).collect::<Vec<_>>());
    }
}

#[test]
fn splits_and_subsets_that_do_not_fit_are_refused() -> Outcome {
    let all = Arc::new(InMemory(vec![0i64; 10]));
    for lengths in [Lengths::from([3, 8]), [0.5, 0.4].into(), [1.5, -0.5].into()] {
        assert!(random_split(all.clone(), lengths, 0).unwrap_err().is_invalid_argument());
    }
    assert_eq!(
        random_split(all.clone(), [4, 6], 1)?[0].indices(),
        random_split(all.clone(), [4, 6], 1)?[0].indices()
    );
    assert!(Subset::new(all, vec![10]).unwrap_err().is_index());
    let short = Tensor::zeros(&[3], DType::F32)?;
    let long = Tensor::zeros(&[4, 2], DType::F32)?;
    let error = TensorDataset::new((short, long)).unwrap_err();
    assert!(error.is_shape() && error.to_string().contains("4 rows"), "{error}");
    assert!(TensorDataset::new(Tensor::scalar(1.0, DType::F32)?).is_err());
    assert!(ConcatDataset::<InMemory<i64>>::new(vec![]).is_err());
    Ok(())
}

#[test]
fn concatenated_datasets_find_the_part_that_has_a_sample() -> Outcome {
    let parts: Vec<Box<dyn Dataset<Sample = i64>>> = vec![
        Box::new(InMemory(vec![1i64, 2])),
        Box::new(InMemory(vec![])),
        Box::new(InMemory(vec![3i64])),
    ];
    let all = ConcatDataset::new(parts)?;
    assert_eq!((0..3).map(|at| all.get(at).unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(all.get(3).unwrap_err().is_index());
    Ok(())
}
