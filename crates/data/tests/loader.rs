//! The loader's promises: the same batches for any number of workers and any bound, failures with
//! their origin and the loader goes on, positions, and origins of bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_data::*;
use plimsoll_tensor::{DType, Device, Error, Result, Tensor, memory};
use proptest::prelude::*;

type Outcome = Result<()>;

fn options() -> LoaderOptions {
    LoaderOptions::new()
}

/// Samples with a random number each, as augmentation would have.
struct Noisy(usize);

impl Dataset for Noisy {
    type Sample = (i64, Tensor);

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Result<(i64, Tensor)> {
        Ok((index as i64, Tensor::rand(&[2], DType::F32)?))
    }
}

fn all(loader: &DataLoader<(Tensor, Tensor)>) -> Vec<(Vec<i64>, Vec<f32>)> {
    let read = |batch: Result<(Tensor, Tensor)>| {
        let (numbers, noise) = batch.unwrap();
        (numbers.to_vec().unwrap(), noise.to_vec().unwrap())
    };
    loader.epoch().unwrap().map(read).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn batches_do_not_depend_on_workers_or_bounds(
        samples in 0usize..60,
        batch_size in 1usize..9,
        workers in 1usize..5,
        factor in 1usize..4,
        bound in proptest::option::of(1usize..8000),
        (shuffle, drop_last) in (any::<bool>(), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let plain = options().batch_size(batch_size).shuffle(shuffle).drop_last(drop_last).seed(seed);
        let alone = DataLoader::new(Noisy(samples), plain.clone()).unwrap();
        let ahead = plain.num_workers(workers).prefetch_factor(factor).prefetch_bytes(bound);
        let ahead = DataLoader::new(Noisy(samples), ahead).unwrap();
        for epoch in 0..3 {
            let expected = all(&alone);
            prop_assert_eq!(&expected, &all(&ahead));
            prop_assert_eq!(Some(expected.len()), alone.len());
            let mut seen: Vec<i64> = expected.iter().flat_map(|batch| batch.0.clone()).collect();
            seen.sort_unstable();
            if !drop_last {
                prop_assert_eq!(seen, (0..samples as i64).collect::<Vec<_>>());
            }
            prop_assert_eq!(ahead.position(), Position { epoch: epoch + 1, batch: 0 });
        }
    }

    #[test]
    fn a_saved_position_gives_exactly_the_batches_that_were_left(
        taken in 0usize..12,
        epochs in 0usize..3,
        (from, to) in (0usize..4, 0usize..4),
    ) {
        let with = |workers: usize| {
            let options = options().batch_size(5usize).shuffle(true).num_workers(workers).seed(9u64);
            DataLoader::new(Noisy(53), options).unwrap()
        };
        let first = with(from);
        (0..epochs).for_each(|_| drop(all(&first)));
        let mut epoch = first.epoch().unwrap();
        epoch.by_ref().take(taken).for_each(|batch| drop(batch.unwrap()));
        let saved = first.position();
        drop(epoch);
        let whole = with(0);
        (0..saved.epoch).for_each(|_| drop(all(&whole)));
        let rest = all(&whole).split_off(saved.batch as usize);
        let resumed = with(to);
        resumed.set_position(saved).unwrap();
        prop_assert_eq!(&rest, &all(&resumed));
        prop_assert_eq!(all(&whole), all(&resumed), "and the epoch after it");
    }
}

#[test]
fn an_epoch_left_early_is_over_and_the_next_is_another() -> Outcome {
    let loader = DataLoader::new(Noisy(20), options().shuffle(true).num_workers(2usize))?;
    let first = loader.epoch()?.next().unwrap()?.0.item::<i64>()?;
    assert_eq!(loader.position(), Position { epoch: 0, batch: 1 });
    let whole = all(&loader);
    assert_eq!(loader.position(), Position { epoch: 2, batch: 0 });
    assert_eq!(whole.len(), 20);
    let alone = DataLoader::new(Noisy(20), options().shuffle(true))?;
    assert_eq!(all(&alone)[0].0, [first]);
    assert_eq!(all(&alone), whole);
    Ok(())
}

#[test]
fn one_epoch_at_a_time() -> Outcome {
    let loader = DataLoader::new(InMemory(vec![1i64, 2]), options().num_workers(1usize))?;
    let epoch = loader.epoch()?;
    let error = loader.epoch().unwrap_err();
    assert!(error.is_invalid_argument() && error.to_string().contains("under way"), "{error}");
    assert!(loader.set_position(Position::default()).is_err());
    drop(epoch);
    assert!(loader.set_position(Position { epoch: 0, batch: 3 }).is_err());
    assert_eq!(loader.epoch()?.count(), 2);
    Ok(())
}

/// Fails at some samples, by an error or a panic.
struct Failing;

const PANIC_LINE: u32 = line!() + 12;

impl Dataset for Failing {
    type Sample = i64;

    fn len(&self) -> usize {
        8
    }

    fn get(&self, index: usize) -> Result<i64> {
        match index {
            3 => Err(Error::shape("decode", "sample 3 is no picture")),
            5 => panic!("as asked"),
            index => Ok(index as i64),
        }
    }
}

#[test]
fn failures_name_worker_batch_sample_and_line_and_the_loader_goes_on() -> Outcome {
    let loader = DataLoader::new(Failing, options().batch_size(2usize).num_workers(3usize))?;
    for epoch in 0..2 {
        let line = line!() + 1;
        let mut batches = loader.epoch()?;
        assert_eq!(batches.next().unwrap()?.to_vec::<i64>()?, [0, 1]);
        let error = batches.next().unwrap().unwrap_err();
        let failure = error.detail::<BatchFailure>().unwrap();
        assert!(error.is_shape() && !failure.panicked, "{error}");
        assert!(failure.worker.is_some_and(|worker| worker < 3));
        assert_eq!((failure.epoch, failure.batch, failure.sample), (epoch, 1, Some(3)));
        assert!(failure.line.contains(&format!("loader.rs:{line}")), "{}", failure.line);
        let text = error.to_string();
        assert!(text.contains("sample 3 is no picture") && text.contains("worker"), "{text}");

        let error = batches.next().unwrap().unwrap_err();
        let failure = error.detail::<BatchFailure>().unwrap();
        assert!(failure.panicked && error.to_string().contains("as asked"), "{error}");
        assert_eq!((failure.batch, failure.sample), (2, Some(5)));
        assert!(failure.line.contains(&format!("loader.rs:{PANIC_LINE}")), "{}", failure.line);

        assert_eq!(batches.next().unwrap()?.to_vec::<i64>()?, [6, 7]);
        assert!(batches.next().is_none() && batches.next().is_none());
    }
    Ok(())
}

#[test]
fn a_sample_of_another_shape_is_named_by_its_number() -> Outcome {
    let samples: Vec<Tensor> = (0..6)
        .map(|n| Tensor::zeros(&[if n == 4 { 3 } else { 2 }], DType::F32))
        .collect::<Result<_>>()?;
    for workers in [0usize, 2] {
        let loader = DataLoader::new(
            InMemory(samples.clone()),
            options().batch_size(3usize).num_workers(workers),
        )?;
        let error = loader.epoch()?.nth(1).unwrap().unwrap_err();
        let failure = error.detail::<BatchFailure>().unwrap();
        assert_eq!((failure.sample, failure.worker.is_some()), (Some(4), workers > 0));
        let text = error.to_string();
        assert!(error.is_shape() && text.contains("[3]") && text.contains("[2]"), "{text}");
    }
    Ok(())
}

/// A stream that fails or panics after some samples.
struct Stream {
    samples: i64,
    fails_at: Option<i64>,
    panics_at: Option<i64>,
}

impl IterableDataset for Stream {
    type Sample = i64;

    fn iter(self: Arc<Self>, epoch: u64) -> Result<Samples<i64>> {
        Ok(Box::new((0..self.samples).map(move |n| {
            assert!(self.panics_at != Some(n), "the stream broke");
            match self.fails_at == Some(n) {
                true => Err(Error::invalid_argument("unreadable")),
                false => Ok(epoch as i64 * 100 + n),
            }
        })))
    }
}

#[test]
fn a_stream_is_read_once_in_order_for_any_number_of_workers() -> Outcome {
    for workers in [0usize, 1, 3] {
        let stream = Stream { samples: 7, fails_at: None, panics_at: None };
        let options = options().batch_size(3usize).num_workers(workers);
        let loader = DataLoader::over_stream(Arc::new(stream), Stacked, options)?;
        let read = |b: Result<Tensor>| b.unwrap().to_vec::<i64>().unwrap();
        let first: Vec<_> = loader.epoch()?.map(read).collect();
        assert_eq!(first, [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        loader.set_position(Position { epoch: 1, batch: 2 })?;
        assert_eq!(loader.epoch()?.map(read).collect::<Vec<_>>(), [vec![106]]);
    }
    Ok(())
}

#[test]
fn a_stream_that_fails_goes_on_and_one_that_panics_ends() -> Outcome {
    let stream = Stream { samples: 6, fails_at: Some(2), panics_at: None };
    let options = options().batch_size(2usize).num_workers(2usize);
    let loader = DataLoader::over_stream(Arc::new(stream), Stacked, options.clone())?;
    let batches: Vec<_> = loader.epoch()?.collect();
    let error = batches[1].as_ref().unwrap_err();
    assert_eq!(error.detail::<BatchFailure>().unwrap().sample, Some(2));
    assert_eq!(batches[2].as_ref().unwrap().to_vec::<i64>()?, [3, 4]);

    let stream = Stream { samples: 6, fails_at: None, panics_at: Some(2) };
    let loader = DataLoader::over_stream(Arc::new(stream), Stacked, options)?;
    let mut batches = loader.epoch()?;
    assert_eq!(batches.next().unwrap()?.to_vec::<i64>()?, [0, 1]);
    let error = batches.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("the stream broke") && error.contains("epoch ends"), "{error}");
    assert!(batches.next().is_none());
    Ok(())
}

#[test]
fn maps_lists_numbers_and_texts_are_stacked_part_by_part() -> Outcome {
    let sample = |n: i64| {
        BTreeMap::from([
            ("x".to_string(), (Tensor::full(&[2], n as f64, DType::F32).unwrap(), n as f64)),
            ("y".to_string(), (Tensor::zeros(&[1], DType::F32).unwrap(), 0.5)),
        ])
    };
    let batch = Stacked.collate(vec![sample(1), sample(2)])?;
    assert_eq!(batch["x"].0.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(batch["x"].1.to_vec::<f64>()?, [1.0, 2.0]);
    let mut other = sample(3);
    other.remove("y");
    assert!(Stacked.collate(vec![sample(1), other]).unwrap_err().to_string().contains("keys"));
    let error = Stacked.collate(vec![vec![1i64], vec![1, 2]]).unwrap_err();
    assert_eq!(error.detail::<Misfit>(), Some(&Misfit { place: 1 }));
    let texts = Stacked.collate(vec![("a".to_string(), true), ("b".to_string(), false)])?;
    assert_eq!((texts.0, texts.1.to_bools()?), (vec!["a".into(), "b".into()], vec![true, false]));
    Ok(())
}

#[test]
fn options_that_do_nothing_or_contradict_are_refused() {
    let made = |options: LoaderOptions| DataLoader::new(InMemory(vec![1i64]), options).map(drop);
    for (options, part) in [
        (options().batch_size(0usize), "batch_size"),
        (options().prefetch_bytes(1usize), "num_workers > 0"),
        (options().num_workers(1usize).prefetch_factor(0usize), "prefetch_factor"),
        (options().num_workers(1usize).prefetch_bytes(0usize), "above 0"),
    ] {
        let error = made(options).unwrap_err();
        assert!(error.is_invalid_argument() && error.to_string().contains(part), "{error}");
    }
    let sampler = SequentialSampler::new(1);
    assert!(
        DataLoader::with_sampler(InMemory(vec![1i64]), sampler, options().shuffle(true)).is_err()
    );
    let batches = BatchSampler::new(sampler, 1, false).unwrap();
    let twice = options().batch_size(2usize);
    assert!(DataLoader::with_batches(InMemory(vec![1i64]), batches, Stacked, twice).is_err());
}

#[test]
fn batches_are_inputs_of_the_line_that_asks_for_them_and_may_be_pinned() -> Outcome {
    let device = plimsoll_tensor::device::private_cpu(&Default::default())?;
    let x = Tensor::zeros(&[4, 256], (DType::F32, device))?;
    let loader = DataLoader::new(
        TensorDataset::new(x.clone())?,
        options().batch_size(2usize).num_workers(1usize),
    )?;
    let line = line!() + 1;
    let mut epoch = loader.epoch()?;
    let batch = epoch.next().unwrap()?;
    let origins = memory::live_by_origin(device);
    let row = origins.iter().find(|row| row.origin.get().operation == "stack").unwrap();
    assert!(row.origin.get().site.to_string().contains(&format!("loader.rs:{line}")));
    let kinds = memory::live_by_kind(device);
    let inputs = kinds.iter().find(|row| row.kind == memory::Kind::Input).unwrap();
    assert!([2048, 4096].contains(&inputs.bytes), "this batch, and the next if it is made");
    drop((batch, epoch));
    assert_eq!(memory::memory_allocated(device), 4096, "the dataset alone");

    let pinned =
        DataLoader::new(InMemory(vec![1i64, 2]), options().num_workers(1usize).pin_memory(true))?;
    for batch in pinned.epoch()? {
        assert!(batch?.is_pinned());
    }
    Ok(())
}

/// Counts how often it is asked.
struct Counted(Arc<AtomicUsize>);

impl Dataset for Counted {
    type Sample = i64;

    fn len(&self) -> usize {
        1000
    }

    fn get(&self, index: usize) -> Result<i64> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(index as i64)
    }
}

#[test]
fn workers_go_no_further_ahead_than_they_may() -> Outcome {
    let count = Arc::new(AtomicUsize::new(0));
    let ahead = options().num_workers(3usize).prefetch_factor(2usize);
    let loader = DataLoader::new(Counted(count.clone()), ahead)?;
    let mut epoch = loader.epoch()?;
    for taken in 1..20 {
        epoch.next().unwrap()?;
        std::thread::yield_now();
        assert!(count.load(Ordering::SeqCst) <= taken + 6);
    }
    drop(epoch);
    let left = count.load(Ordering::SeqCst);
    assert!(left <= 19 + 6);
    assert_eq!(count.load(Ordering::SeqCst), left, "nobody works on after the iterator is gone");
    assert_eq!(Device::cpu(), Tensor::scalar(0, DType::I64)?.device());
    Ok(())
}

#[test]
fn epochs_go_on_without_an_end_and_stop_where_there_is_no_batch() -> Outcome {
    for workers in [0usize, 2] {
        let options = LoaderOptions::new().batch_size(2usize).shuffle(true).num_workers(workers);
        let samples = InMemory((0..5).collect::<Vec<i64>>());
        let by_epoch = DataLoader::new(samples.clone(), options.clone())?;
        let mut expected: Vec<Vec<i64>> = Vec::new();
        for _ in 0..3 {
            expected.extend(by_epoch.epoch()?.map(|b| b.unwrap().to_vec::<i64>().unwrap()));
        }
        let loader = DataLoader::new(samples, options.clone())?;
        let batches = loader.epochs().take(9).map(|b| b.unwrap().to_vec::<i64>().unwrap());
        assert_eq!(batches.collect::<Vec<_>>(), expected, "{workers} workers");
        assert_ne!(expected[..3], expected[3..6], "each epoch has its own order");

        // A position at the very end of an epoch goes on with the next one.
        loader.set_position(Position { epoch: 0, batch: 3 })?;
        let next = loader.epochs().next().expect("there is a next epoch")?;
        assert_eq!(next.to_vec::<i64>()?, expected[3]);

        let nothing = DataLoader::new(InMemory(Vec::<i64>::new()), options)?;
        assert!(nothing.epochs().next().is_none());

        // Two at once is an error, as with epochs.
        let mut first = loader.epochs();
        assert!(first.next().is_some());
        let error = loader.epochs().next().expect("an error").unwrap_err().to_string();
        assert!(error.contains("under way"), "{error}");
    }
    Ok(())
}
