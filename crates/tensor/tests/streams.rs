//! The stand-in accelerator's manners: queued work, streams that order themselves, copies beside
//! the host, capacity, and errors that come late. Nothing here is timed: a paused stream shows what
//! has not run yet.

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn stand_in() -> Device {
    let configuration = Some(Configuration::default());
    device::stand_in(StandIn { capacity_bytes: 256 << 20, configuration, ..StandIn::default() })
        .unwrap()
}

fn ones(device: Device) -> Tensor {
    Tensor::ones(&[1000], (DType::F32, device)).unwrap()
}

#[test]
fn work_is_queued_and_reading_waits_for_it() -> Outcome {
    let device = stand_in();
    let x = ones(device);
    device::synchronize(device)?;
    let stream = Stream::current(device);
    let pause = stream.pause()?;
    let y = x.add(1.0)?.mul(3.0)?;
    let event = stream.record_event();
    assert!(!event.query() && !stream.query());
    drop(pause);
    assert_eq!(y.to_vec::<f32>()?, [6.0; 1000]);
    assert!(event.query());
    event.synchronize()
}

#[test]
fn streams_that_touch_the_same_memory_order_themselves() -> Outcome {
    let device = stand_in();
    let (a, b) = (Stream::new(device)?, Stream::new(device)?);
    let x = ones(device);
    let pause = a.pause()?;
    // A write that cannot run yet, a read of it on another stream, a write over what that one
    // reads.
    with_stream(&a, || x.add_(1.0))?;
    let y = with_stream(&b, || x.mul(10.0))?;
    with_stream(&a, || x.zero_())?;
    let elsewhere = with_stream(&b, || ones(device).sum())?;
    assert!(!b.query(), "b waits for a");
    drop(pause);
    assert_eq!(y.to_vec::<f32>()?, [20.0; 1000]);
    assert_eq!(x.to_vec::<f32>()?, [0.0; 1000]);
    assert_eq!(elsewhere.item::<f32>()?, 1000.0);
    Ok(())
}

#[test]
fn streams_that_share_nothing_do_not_wait_for_each_other() -> Outcome {
    let device = stand_in();
    let (a, b) = (Stream::new(device)?, Stream::new(device)?);
    let _pause = a.pause()?;
    let held = with_stream(&a, || ones(device).add(1.0))?;
    let free = with_stream(&b, || {
        let y = ones(device).add(1.0)?;
        y.to_vec::<f32>()
    })?;
    assert_eq!(free, [2.0; 1000]);
    assert!(!a.query());
    drop(held);
    Ok(())
}

#[test]
fn memory_that_another_stream_uses_is_not_handed_out_before_it_is_done() -> Outcome {
    let device = stand_in();
    let arena = memory::arena(device);
    let side = Stream::new(device)?;
    let x = ones(device);
    let address = x.data_ptr()?;
    let pause = side.pause()?;
    let y = with_stream(&side, || x.add(1.0))?;
    drop(x);
    assert_eq!(arena.pending_bytes(), 4096, "the side stream still reads it");
    let other = ones(device);
    assert_ne!(other.data_ptr()?, address);
    drop(pause);
    side.synchronize()?;
    assert_eq!(arena.pending_bytes(), 0);
    assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]);
    Ok(())
}

#[test]
fn fresh_memory_is_not_touched_by_a_stream_before_its_own_stream_is_done_with_it() -> Outcome {
    let device = stand_in();
    let (home, side) = (Stream::current(device), Stream::new(device)?);
    device::synchronize(device)?;
    let pause = home.pause()?;
    let old = ones(device);
    let total = old.sum()?; // queued on the paused home stream
    let address = old.data_ptr()?;
    drop(old);
    let fresh = Tensor::empty(&[1000], (DType::F32, device))?;
    assert_eq!(fresh.data_ptr()?, address, "its own stream may have it again at once");
    with_stream(&side, || fresh.fill_(7.0))?;
    assert!(!side.query(), "the side stream waits until the sum has read the old values");
    drop(pause);
    assert_eq!(total.item::<f32>()?, 1000.0);
    assert_eq!(fresh.to_vec::<f32>()?, [7.0; 1000]);
    Ok(())
}

#[test]
fn a_segment_goes_back_only_after_its_streams_drained() -> Outcome {
    let device = stand_in();
    let stream = Stream::new(device)?;
    let sums: Vec<Tensor> = with_stream(&stream, || {
        (0..8)
            .map(|n| Tensor::full(&[1 << 20], n as f32, (DType::F32, device))?.sum())
            .collect::<Result<_>>()
    })?;
    // The inputs are dropped and their work is perhaps still queued.
    assert!(memory::empty_cache(device) > 0);
    for (n, sum) in sums.iter().enumerate() {
        assert_eq!(sum.item::<f32>()?, n as f32 * (1 << 20) as f32);
    }
    Ok(())
}

#[test]
fn pinned_memory_is_copied_beside_the_host_and_host_writes_wait() -> Outcome {
    let device = stand_in();
    let batch = Tensor::full(&[1000], 5.0, DType::F32)?.pin_memory()?;
    let weak = batch.downgrade();
    let stream = Stream::current(device);
    let pause = stream.pause()?;
    let there = batch.to_non_blocking(device)?;
    assert!(!stream.query(), "the copy has not run and the host went on");
    assert_eq!(batch.to_vec::<f32>()?, [5.0; 1000], "reading does not disturb the copy");
    let writer = std::thread::spawn({
        let batch = batch.clone();
        move || batch.fill_(6.0).map(drop)
    });
    drop(batch);
    drop(pause);
    writer.join().unwrap()?;
    assert_eq!(there.to_vec::<f32>()?, [5.0; 1000], "the write came after the copy");
    assert!(weak.upgrade().is_none());
    Ok(())
}

#[test]
fn dropped_pinned_memory_lives_until_the_copy_has_read_it() -> Outcome {
    let device = stand_in();
    let pause = Stream::current(device).pause()?;
    let there: Vec<Tensor> = (0..20)
        .map(|n| Tensor::full(&[1000], n as f32, DType::F32)?.pin_memory()?.to_non_blocking(device))
        .collect::<Result<_>>()?;
    drop(pause);
    for (n, x) in there.iter().enumerate() {
        assert_eq!(x.to_vec::<f32>()?, [n as f32; 1000]);
    }
    Ok(())
}

#[test]
fn a_copy_to_the_host_beside_the_host_is_waited_for_by_whoever_reads() -> Outcome {
    let device = stand_in();
    let x = ones(device);
    let stream = Stream::current(device);
    let pause = stream.pause()?;
    let back = x.add(2.0)?.to_non_blocking(Device::cpu())?;
    assert!(back.is_pinned() && !stream.query());
    drop(pause);
    assert_eq!(back.add(1.0)?.to_vec::<f32>()?, [4.0; 1000]);
    Ok(())
}

#[test]
fn copies_into_buffers_take_no_memory_and_need_not_be_waited_for() -> Outcome {
    let device = stand_in();
    let go_on = CopyOptions::new().non_blocking(true);
    let buffer = Tensor::zeros(&[2, 1000], (DType::F32, device))?;
    let host = Tensor::full(&[1000], 5.0, DType::F32)?.pin_memory()?;
    let version = buffer.version();
    let before = memory::memory_allocated(device);
    let peak = memory::peak_scope(device);
    let stream = Stream::current(device);
    let pause = stream.pause()?;
    let row = buffer.select(0, 1)?;
    row.copy_with_(&host, go_on.clone())?;
    assert!(!stream.query(), "the copy has not run and the host went on");
    let back = Tensor::zeros(&[1000], DType::F32)?.pin_memory()?;
    back.copy_with_(&row, go_on)?;
    assert!(!stream.query(), "nor has the copy back");
    drop(pause);
    assert_eq!(back.to_vec::<f32>()?, [5.0; 1000]);
    assert_eq!(buffer.select(0, 0)?.to_vec::<f32>()?, [0.0; 1000], "its neighbour is untouched");
    assert_eq!(buffer.version(), version + 1);
    buffer.copy_(&Tensor::ones(&[2, 1000], DType::F32)?)?;
    assert_eq!(peak.allocated_bytes_peak(), before, "nothing was allocated on the device");
    assert_eq!(buffer.sum()?.item::<f32>()?, 2000.0);
    // What must be converted, broadcast or recorded takes the way over a copy there.
    buffer.copy_(&Tensor::ones(&[1000], DType::F64)?)?;
    let leaf = Tensor::ones(&[2, 1000], DType::F32)?.requires_grad_(true)?;
    let sum = buffer.copy_(&leaf)?.sum()?;
    sum.backward()?;
    assert_eq!(leaf.grad().unwrap().to_vec::<f32>()?, [1.0; 2000]);
    Ok(())
}

#[test]
fn devices_copy_to_each_other_in_the_order_of_both() -> Outcome {
    let (one, two) = (stand_in(), stand_in());
    let x = ones(one);
    let (from, to) = (Stream::current(one), Stream::current(two));
    let pause = to.pause()?;
    let moved = x.add(1.0)?.to_non_blocking(two)?; // its source is dropped at once
    let reused = Tensor::zeros(&[1000], (DType::F32, one))?; // may take the source's memory
    assert!(!from.query(), "the source's stream waits until the target's has copied");
    drop(pause);
    assert_eq!(moved.to_vec::<f32>()?, [2.0; 1000]);
    assert_eq!(reused.to_vec::<f32>()?, [0.0; 1000]);
    Ok(())
}

#[test]
fn operands_on_two_devices_are_refused_by_both_names() -> Outcome {
    let (one, two) = (stand_in(), stand_in());
    let error = ones(one).add(&ones(two)).unwrap_err();
    let text = error.to_string();
    assert!(error.is_device(), "{text}");
    assert!(text.contains(&one.to_string()) && text.contains(&two.to_string()), "{text}");
    let error = ones(one).record_stream(&Stream::current(two)).unwrap_err();
    assert!(error.is_device(), "{error}");
    Ok(())
}

#[test]
fn beyond_the_capacity_is_out_of_memory_with_a_report_and_survived() -> Outcome {
    let device = stand_in();
    let held: Vec<Tensor> =
        (0..6).map(|_| Tensor::zeros(&[10 << 20], (DType::F32, device))).collect::<Result<_>>()?;
    let error = Tensor::zeros(&[10 << 20], (DType::F32, device)).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    let report = error.detail::<plimsoll_memory::OutOfMemory>().expect("it carries a report");
    assert!(
        report.to_string().contains("zeros") || error.to_string().contains("streams.rs"),
        "{report}"
    );
    drop(held);
    let x = Tensor::zeros(&[10 << 20], (DType::F32, device))?;
    assert_eq!(x.sum()?.item::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn an_index_out_of_range_is_told_when_the_host_next_waits() -> Outcome {
    let device = stand_in();
    let x = ones(device);
    let index = Tensor::from_slice(&[5i64, 1000], &[2], device)?;
    let line = line!() + 1;
    let picked = x.gather(0, &index)?; // returns; the stream finds out later
    let error = picked.add(1.0)?.to_vec::<f32>().unwrap_err();
    let text = error.to_string();
    assert!(error.is_index() && error.operation() == Some("gather"), "{text}");
    assert!(text.contains("1000") && text.contains(&format!("streams.rs:{line}")), "{text}");
    let fine = x.gather(0, &index.narrow(0, 0, 1)?)?;
    assert_eq!(fine.to_vec::<f32>()?, [1.0], "the device works on");
    assert_eq!(
        x.gt(0.0)?.nonzero()?.shape(),
        [1000, 1],
        "a size that only data tells is waited for"
    );
    Ok(())
}

#[test]
fn training_on_the_stand_in_gives_what_the_cpu_gives() -> Outcome {
    let run = |device: Device| -> Result<Vec<f32>> {
        let x = Tensor::arange(0, 12, 1, DType::F32)?.view(&[3, 4])?.to(device)?;
        let w = Tensor::full(&[4], 0.1, (DType::F32, device))?.requires_grad_(true)?;
        for _ in 0..5 {
            let loss = x.mul(&w)?.tanh()?.sum()?;
            loss.backward()?;
            let grad = w.grad().unwrap();
            no_grad(|| w.sub_(&grad.mul(0.01)?).map(drop))?;
            w.set_grad(None)?;
        }
        w.to_vec::<f32>()
    };
    assert_eq!(run(stand_in())?, run(Device::cpu())?);
    Ok(())
}
