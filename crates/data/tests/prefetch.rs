//! Prefetchers on the stand-in accelerator: what overlaps with what, in which order, and how many
//! bytes are on the device. Nothing is timed: a paused stream shows what does not wait for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plimsoll_data::*;
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::observe::{Launch, LaunchTime, Observer, observe};
use plimsoll_tensor::{DType, Device, Event, Result, Stream, Tensor, memory};

type Outcome = Result<()>;

const COLUMNS: i64 = 4096;
const BATCH: usize = COLUMNS as usize * 4;

fn stand_in() -> Device {
    let configuration = Some(Configuration::default());
    device::stand_in(StandIn { capacity_bytes: 64 << 20, configuration, ..StandIn::default() })
        .unwrap()
}

/// Pinned batches, the n-th full of n.
fn batches(count: i64) -> impl Iterator<Item = Result<Tensor>> {
    (0..count).map(|n| Tensor::full(&[COLUMNS], n as f64, DType::F32)?.pin_memory())
}

fn prefetcher(
    count: i64,
    gpu: Device,
    buffers: usize,
) -> Prefetcher<impl Iterator<Item = Result<Tensor>>> {
    Prefetcher::with_options(batches(count), gpu, PrefetchOptions::new().buffers(buffers)).unwrap()
}

/// Waits until the work before an event has run, for at most some seconds.
fn passes(event: &Event) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(if event.query() { 0 } else { 10 }));
        event.query()
    })
}

/// Hears which operation is queued on which stream of a device.
struct Heard(Device, Mutex<Vec<(&'static str, u64)>>);

impl Observer for Heard {
    fn end(&self, launch: &Launch, _: &LaunchTime) {
        if launch.device == self.0 {
            self.1.lock().push((launch.operation, launch.stream));
        }
    }
}

#[test]
fn copies_and_computations_are_queued_in_this_order_on_these_streams() -> Outcome {
    for buffers in 1..=3 {
        let gpu = stand_in();
        let heard = Arc::new(Heard(gpu, Mutex::default()));
        let observing = observe(heard.clone());
        let ahead = prefetcher(5, gpu, buffers);
        let streams: Vec<u64> = ahead.streams().iter().map(Stream::id).collect();
        assert_eq!(streams.len(), buffers);
        let mut results = Vec::new();
        for batch in ahead {
            results.push(batch?.add(1.0)?);
            // So that the order does not depend on how fast the device is.
            device::synchronize(gpu)?;
        }
        drop(observing);
        let copy = |n: usize| ("to", streams[n % buffers]);
        let add = ("add", 0);
        let expected = match buffers {
            1 => vec![copy(0), add, copy(1), add, copy(2), add, copy(3), add, copy(4), add],
            2 => vec![copy(0), copy(1), add, copy(2), add, copy(3), add, copy(4), add, add],
            _ => vec![copy(0), copy(1), copy(2), add, copy(3), add, copy(4), add, add, add],
        };
        assert_eq!(*heard.1.lock(), expected, "{buffers} buffers");
        for (n, result) in results.iter().enumerate() {
            assert_eq!(result.to_vec::<f32>()?, [n as f32 + 1.0; COLUMNS as usize]);
        }
    }
    Ok(())
}

#[test]
fn the_next_batch_is_copied_while_this_one_is_computed_on() -> Outcome {
    for buffers in [2, 3] {
        let gpu = stand_in();
        let compute = Stream::current(gpu);
        let mut ahead = prefetcher(4, gpu, buffers);
        let first = ahead.next().unwrap()?;
        let pause = compute.pause()?;
        let result = first.add(1.0)?;
        // The computation cannot run; the copies to all other buffers can.
        for stream in &ahead.streams()[1..].to_vec() {
            assert!(passes(&stream.record_event()), "the copy waits for the computation");
        }
        assert!(!compute.query());
        drop(pause);
        assert_eq!(result.to_vec::<f32>()?, [1.0; COLUMNS as usize]);
    }
    Ok(())
}

#[test]
fn a_computation_waits_for_its_own_copy_and_for_no_later_one() -> Outcome {
    for buffers in [2, 3] {
        let gpu = stand_in();
        let mut ahead = prefetcher(4, gpu, buffers);
        // Every later copy is held back; the first is not.
        let later: Vec<_> =
            ahead.streams()[1..].iter().map(|stream| stream.pause()).collect::<Result<_>>()?;
        let first = ahead.next().unwrap()?;
        let result = first.add(1.0)?;
        let done = Stream::current(gpu).record_event();
        assert!(passes(&done), "the computation waits for a later copy");
        drop((first, later));
        assert_eq!(result.to_vec::<f32>()?, [1.0; COLUMNS as usize]);

        let mut ahead = prefetcher(1, gpu, buffers);
        let own = ahead.streams()[0].pause()?;
        let first = ahead.next().unwrap()?;
        let result = first.add(1.0)?;
        assert!(!Stream::current(gpu).query(), "the copy has not run");
        drop(own);
        assert_eq!(result.to_vec::<f32>()?, [1.0; COLUMNS as usize]);
    }
    Ok(())
}

#[test]
fn three_buffers_let_the_host_run_ahead_and_two_do_not() -> Outcome {
    let gpu = stand_in();
    let compute = Stream::current(gpu);
    let mut ahead = prefetcher(4, gpu, 3);
    let first = ahead.next().unwrap()?;
    let pause = compute.pause()?;
    let one = first.add(1.0)?;
    drop(first);
    // The first is still computed on, and the second is handed out.
    let second = ahead.next().unwrap()?;
    let two = second.add(1.0)?;
    assert!(!compute.query());
    drop(pause);
    assert_eq!((one.sum()?.item::<f32>()?, two.sum()?.item::<f32>()?), (4096.0, 8192.0));

    let mut ahead = prefetcher(4, gpu, 2);
    let first = ahead.next().unwrap()?;
    let pause = compute.pause()?;
    let one = first.add(1.0)?;
    drop(first);
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            told.send("computed").unwrap();
            drop(pause);
        });
        let second = ahead.next().unwrap();
        assert_eq!(heard.try_recv(), Ok("computed"), "the host waited for the computation");
        second.map(drop)
    })?;
    assert_eq!(one.sum()?.item::<f32>()?, 4096.0);
    Ok(())
}

#[test]
fn no_more_batches_are_on_the_device_than_there_are_buffers() -> Outcome {
    for buffers in 1..=3 {
        let gpu = stand_in();
        let scope = memory::peak_scope(gpu);
        for batch in prefetcher(20, gpu, buffers) {
            let batch = batch?;
            batch.mul_(2.0)?;
            let row = memory::live_by_kind(gpu)[0];
            assert_eq!(row.kind, memory::Kind::Input);
        }
        assert_eq!(scope.allocated_bytes_peak(), buffers * BATCH);
        device::synchronize(gpu)?;
        assert_eq!(memory::memory_allocated(gpu), 0);
    }
    Ok(())
}

#[test]
fn leaving_early_leaves_nothing_and_a_failed_batch_does_not_end_it() -> Outcome {
    let gpu = stand_in();
    let mut ahead = prefetcher(9, gpu, 3);
    drop(ahead.next().unwrap()?);
    drop(ahead);
    device::synchronize(gpu)?;
    assert_eq!(memory::memory_allocated(gpu), 0);

    let uneven = vec![
        Tensor::zeros(&[2], DType::F32)?,
        Tensor::zeros(&[2], DType::F32)?,
        Tensor::zeros(&[2], DType::F32)?,
        Tensor::zeros(&[3], DType::F32)?,
        Tensor::ones(&[2], DType::F32)?,
    ];
    let options = LoaderOptions::new().batch_size(2usize).num_workers(2usize).pin_memory(true);
    let loader = DataLoader::new(InMemory(uneven), options)?;
    let outcomes: Vec<_> = Prefetcher::new(loader.epoch()?, gpu)?.collect();
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(outcomes[2].as_ref().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    assert!(
        Prefetcher::with_options(batches(1), gpu, PrefetchOptions::new().buffers(4usize)).is_err()
    );
    Ok(())
}

#[test]
fn a_dry_run_foretells_the_bytes() -> Outcome {
    let gpu = stand_in();
    let dry = device::dry(gpu)?;
    let dry_host = device::dry(Device::cpu())?;
    for buffers in 1..=3usize {
        let peak = |device: Device, host: Device| -> Result<usize> {
            let scope = memory::peak_scope(device);
            let made = (0..6).map(|_| Tensor::zeros(&[COLUMNS], (DType::F32, host)));
            let options = PrefetchOptions::new().buffers(buffers);
            for batch in Prefetcher::with_options(made, device, options)? {
                drop(batch?.exp()?.sum()?);
            }
            Ok(scope.allocated_bytes_peak())
        };
        assert_eq!(peak(gpu, Device::cpu())?, peak(dry, dry_host)?);
    }
    Ok(())
}
