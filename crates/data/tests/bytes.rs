//! Every byte of a loader is in the book: waiting batches never pass the bound, a larger one passes
//! alone, and leaving early leaves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_data::*;
use plimsoll_memory::Configuration;
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

type Outcome = Result<()>;

fn host() -> Device {
    device::private_cpu(&Configuration::default()).unwrap()
}

fn options() -> LoaderOptions {
    LoaderOptions::new()
}

/// Rows of one tensor, whose samples take no memory: a batch's is all there is.
fn rows(device: Device, rows: i64, columns: i64) -> TensorDataset<Tensor> {
    TensorDataset::new(Tensor::zeros(&[rows, columns], (DType::F32, device)).unwrap()).unwrap()
}

/// Waits for some seconds until the workers have made so many bytes; that they never make more is
/// for peaks to say.
fn reaches(device: Device, bytes: usize) -> bool {
    (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        memory::memory_allocated(device) == bytes
    })
}

#[test]
fn waiting_batches_never_pass_the_bound() -> Outcome {
    const BATCH: usize = 4 * 256 * 4;
    for (bound, most) in [(3 * BATCH, 3), (3 * BATCH + 1000, 3), (BATCH, 1), (BATCH - 1, 1)] {
        let device = host();
        let dataset = rows(device, 64, 256);
        let base = memory::memory_allocated(device);
        let ahead = options().batch_size(4usize).num_workers(3usize).prefetch_factor(8usize);
        let loader = DataLoader::new(dataset, ahead.prefetch_bytes(bound))?;
        let scope = memory::peak_scope(device);
        let mut epoch = loader.epoch()?;
        assert!(reaches(device, base + BATCH * most), "nobody has taken one");
        let mut taken = 0;
        for batch in epoch.by_ref() {
            let batch = batch?;
            taken += 1;
            let waiting = BATCH * most.min(16 - taken);
            assert!(reaches(device, base + BATCH + waiting), "after {taken} of bound {bound}");
            assert_eq!(waiting, loader.waiting_bytes());
            drop(batch);
        }
        assert_eq!(scope.allocated_bytes_peak() - base, BATCH * (most + 1));
        drop(epoch);
        assert_eq!(memory::memory_allocated(device), base);
    }
    Ok(())
}

/// Samples of different sizes on a device of the test's own.
struct Uneven(Device);

impl Dataset for Uneven {
    type Sample = Tensor;

    fn len(&self) -> usize {
        40
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        // Every seventh is ten times as large.
        let columns = if index.is_multiple_of(7) { 1280 } else { 128 };
        Tensor::zeros(&[columns], (DType::F32, self.0))
    }
}

#[test]
fn batches_of_many_sizes_stay_under_the_bound_and_large_ones_pass_alone() -> Outcome {
    const SMALL: usize = 128 * 4;
    const LARGE: usize = 1280 * 4;
    let device = host();
    let bound = 4 * SMALL;
    let ahead = options().num_workers(2usize).prefetch_factor(10usize).prefetch_bytes(bound);
    let loader = DataLoader::new(Uneven(device), ahead)?;
    let mut count = 0;
    for batch in loader.epoch()? {
        let bytes = batch?.nbytes();
        assert_eq!(bytes, if count % 7 == 0 { LARGE } else { SMALL });
        std::thread::sleep(Duration::from_millis(2));
        let waiting = loader.waiting_bytes();
        assert!(waiting <= bound || waiting == LARGE, "{waiting} bytes wait after batch {count}");
        count += 1;
    }
    assert_eq!((count, memory::memory_allocated(device)), (40, 0));
    Ok(())
}

#[test]
fn a_collate_function_that_does_not_know_its_size_is_counted_when_it_is_done() -> Outcome {
    let device = host();
    let collate = |samples: Vec<Tensor>| Tensor::stack(&samples.iter().collect::<Vec<_>>(), 0);
    let ahead = options().batch_size(4usize).num_workers(2usize).prefetch_factor(4usize);
    let loader =
        DataLoader::with_collate(rows(device, 32, 128), collate, ahead.prefetch_bytes(4096usize))?;
    let base = memory::memory_allocated(device);
    let mut epoch = loader.epoch()?;
    drop(epoch.next().unwrap()?);
    assert!(reaches(device, base + 4096), "two batches of 2048");
    drop(epoch);
    assert_eq!(memory::memory_allocated(device), base);
    Ok(())
}

#[test]
fn leaving_at_any_moment_leaves_no_byte() -> Outcome {
    let device = host();
    for workers in [0usize, 1, 4] {
        let ahead = options().num_workers(workers).shuffle(true);
        let loader = DataLoader::new(Uneven(device), ahead)?;
        for taken in 0..12 {
            let held: Vec<Tensor> = loader.epoch()?.take(taken).collect::<Result<_>>()?;
            assert_eq!(held.len(), taken);
            let bytes: usize = held.iter().map(batch_bytes).sum();
            assert_eq!(memory::memory_allocated(device), bytes);
            drop(held);
            assert_eq!(memory::memory_allocated(device), 0);
        }
        drop(loader);
        assert_eq!(memory::memory_allocated(device), 0);
    }
    Ok(())
}

/// Slow samples, to leave in the middle of one.
struct Slow {
    device: Device,
    begun: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

impl Dataset for Slow {
    type Sample = Tensor;

    fn len(&self) -> usize {
        1000
    }

    fn get(&self, _: usize) -> Result<Tensor> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let sample = Tensor::zeros(&[256], (DType::F32, self.device))?;
        std::thread::sleep(Duration::from_millis(5));
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(sample)
    }
}

#[test]
fn leaving_waits_for_the_samples_in_work_and_for_no_others() -> Outcome {
    let device = host();
    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let slow = Slow { device, begun: begun.clone(), done: done.clone() };
    let loader = DataLoader::new(slow, options().batch_size(100usize).num_workers(2usize))?;
    let epoch = loader.epoch()?;
    while begun.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    drop(epoch);
    let (begun, done) = (begun.load(Ordering::SeqCst), done.load(Ordering::SeqCst));
    assert_eq!(begun, done, "no sample is in work");
    assert!(begun < 100, "not even one batch was finished, and {begun} samples were read");
    assert_eq!(memory::memory_allocated(device), 0);
    Ok(())
}

#[test]
fn draws_with_replacement_take_a_piece_whatever_the_length_of_an_epoch() -> Outcome {
    const PIECE: usize = 4096 * 8;
    let long = RandomSampler::new(1000, 3)?.replacement(true).num_samples(1_000_000)?;
    let scope = memory::peak_scope(Device::cpu());
    let before = memory::memory_allocated(Device::cpu());
    let mut order = long.order(0)?;
    assert!(order.by_ref().take(10_000).all(|drawn| drawn.is_ok_and(|at| at < 1000)));
    let peak = scope.allocated_bytes_peak() - before;
    assert!((PIECE..2 * PIECE).contains(&peak), "{peak} bytes for two pieces");
    assert_eq!(order.count(), 990_000);
    Ok(())
}
