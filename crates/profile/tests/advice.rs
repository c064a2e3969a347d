//! Why a program is slow: each cause in a program that has it, and the same program without it.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use plimsoll_data::{DataLoader, Dataset, LoaderOptions};
use plimsoll_memory::Configuration;
use plimsoll_profile::{Advice, Cause, Profile, Recording, range};
use plimsoll_tensor::{DType, Device, Error, Result, Stream, Tensor, device};

/// One session runs at a time, in one process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn told(recording: &Recording, cause: Cause) -> Option<Advice> {
    recording.advice().into_iter().find(|advice| advice.cause == cause)
}

fn sleep_ms(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn an_operation_over_a_tenth_of_the_time_is_named_with_its_line() -> Result<()> {
    let _alone = alone();
    let x = Tensor::ones(&[256, 256], (DType::F32, Device::cpu()))?;
    let often = Profile::new().run(|| {
        for _ in 0..4 {
            x.mm(&x)?;
        }
        Ok(())
    })?;
    let first = &often.advice()[0];
    assert_eq!(first.cause, Cause::Operation);
    assert!(first.text.starts_with("aten::mm takes ") && first.text.contains("4 calls"), "{first}");
    assert!(first.share > 0.1 && first.text.contains("tests/advice.rs"), "{first}");

    let small = Tensor::ones(&[4], DType::F32)?;
    let rarely = Profile::new().run(|| {
        small.exp()?;
        let _range = range("the rest");
        sleep_ms(200);
        Ok(())
    })?;
    assert!(told(&rarely, Cause::Operation).is_none(), "{:?}", rarely.advice());
    Ok(())
}

/// Numbers, each of which takes some milliseconds to get.
struct Slow {
    milliseconds: u64,
}

impl Dataset for Slow {
    type Sample = i64;

    fn len(&self) -> usize {
        4
    }

    fn get(&self, index: usize) -> Result<i64> {
        sleep_ms(self.milliseconds);
        Ok(index as i64)
    }
}

/// A loop over batches of slow samples that computes for some milliseconds a batch.
fn looped(sample_ms: u64, compute_ms: u64, workers: usize) -> Result<Recording> {
    let options = LoaderOptions::new().batch_size(2usize).num_workers(workers);
    let loader = DataLoader::new(Slow { milliseconds: sample_ms }, options)?;
    Profile::new().run(|| {
        for batch in loader.epoch()? {
            let _range = range("compute");
            batch?.add(1)?;
            sleep_ms(compute_ms);
        }
        Ok(())
    })
}

#[test]
fn a_loop_that_waits_for_its_loader_is_told_so() -> Result<()> {
    let _alone = alone();
    for workers in [0, 1] {
        let first = looped(20, 0, workers)?.advice()[0].clone();
        assert_eq!(first.cause, Cause::Loader, "{workers} workers: {first}");
        // Two batches, and the end of the epoch.
        assert!(first.share > 0.5 && first.text.contains("in 3 waits"), "{first}");
        assert!(first.text.contains("more workers"), "{first}");
        let quick = looped(0, 150, workers)?;
        assert!(told(&quick, Cause::Loader).is_none(), "{:?}", quick.advice());
    }
    Ok(())
}

#[test]
fn a_wait_that_costs_a_share_of_the_time_is_named() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[16], (DType::F32, gpu))?;
    device::synchronize(gpu)?;
    let pause = Stream::current(gpu).pause()?;
    let recording = Profile::new().run(|| {
        let y = x.exp()?;
        let release = std::thread::spawn(move || {
            sleep_ms(50);
            drop(pause);
        });
        y.sum()?.item::<f32>()?;
        release.join().map_err(|_| Error::driver("the thread panicked"))
    })?;
    let wait = told(&recording, Cause::Synchronization).unwrap();
    assert!(wait.share > 0.5 && wait.text.contains("tests/advice.rs"), "{wait}");
    assert!(wait.text.contains("less often"), "{wait}");

    // Read when the device has long been there, a result is not waited for.
    let later = Profile::new().run(|| {
        let sum = x.exp()?.sum()?;
        sleep_ms(200);
        sum.item::<f32>().map(drop)
    })?;
    assert!(told(&later, Cause::Synchronization).is_none(), "{:?}", later.advice());
    Ok(())
}

#[test]
fn copies_from_memory_that_is_not_pinned_are_told_of() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let host = Tensor::ones(&[1 << 16], DType::F32)?;
    let copies = |from: &Tensor| {
        Profile::new().run(|| {
            for _ in 0..3 {
                from.to(gpu)?.exp()?.sum()?.item::<f32>()?;
            }
            Ok(())
        })
    };
    let pageable = told(&copies(&host)?, Cause::PageableCopy).unwrap();
    assert!(pageable.text.starts_with("3 copies (768.00 KB"), "{pageable}");
    assert!(pageable.text.contains("pin_memory"), "{pageable}");

    let pinned = copies(&host.pin_memory()?)?;
    let names = pinned.events().iter().filter(|e| e.name == "Memcpy HtoD (Pinned -> Device)");
    assert_eq!(names.count(), 3);
    assert!(told(&pinned, Cause::PageableCopy).is_none(), "{:?}", pinned.advice());
    Ok(())
}

#[test]
fn memory_from_the_source_counts_from_the_second_step_on() -> Result<()> {
    let _alone = alone();
    let steps = |late: bool| -> Result<Recording> {
        let cpu = device::private_cpu(&Configuration::default())?;
        Profile::new().run(|| {
            for number in 0..3 {
                let _step = range(format!("ProfilerStep#{number}"));
                let wide = if late && number == 2 { 64 } else { 1 };
                Tensor::ones(&[wide << 18], (DType::F32, cpu))?;
            }
            Ok(())
        })
    };
    assert!(told(&steps(false)?, Cause::SourceAllocation).is_none());
    let late = told(&steps(true)?, Cause::SourceAllocation).unwrap();
    assert!(late.text.contains("1 allocations") && late.text.contains("64.00 MB"), "{late}");
    assert!(late.text.contains("tests/advice.rs"), "{late}");
    Ok(())
}
