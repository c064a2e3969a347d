//! Evaluations that say nothing are as the configuration of the process says. A program of its own:
//! one configuration is in force in a process.

use plimsoll_data::*;
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::{DType, Device, Result, Tensor, memory};

/// A tensor of this many bytes has a segment of its own, so that reserved bytes can be counted.
const ROW: usize = 16 << 20;
const NUMBERS: i64 = (ROW / 4) as i64;

fn stand_in() -> Result<Device> {
    device::stand_in(StandIn { capacity_bytes: 256 << 20, ..StandIn::default() })
}

#[test]
fn what_calls_do_not_say_the_configuration_says() -> Result<()> {
    let text = "chunk_size:1,prefetch_buffers:3,cleanup_every:2,final_cleanup:true";
    Configuration::parse(text)?.install()?;
    let x = Tensor::ones(&[4, NUMBERS], DType::F32)?;
    let options = |gpu: Device| ChunkOptions::new().device(gpu);

    // Chunks of one row, three of them on the device, and one result.
    let gpu = stand_in()?;
    let scope = memory::peak_scope(gpu);
    let mut seen = Vec::new();
    let sums = process_in_chunks_with(&x, options(gpu), |rows| {
        seen.push(rows.shape()[0]);
        rows.add(1.0)?.sum_with(1)
    })?;
    assert_eq!((seen, sums.to_vec::<f32>()?), (vec![1; 4], vec![2.0 * NUMBERS as f32; 4]));
    let peak = scope.allocated_bytes_peak();
    assert!((4 * ROW..4 * ROW + 4096).contains(&peak), "{peak}");
    assert_eq!(memory::memory_reserved(gpu), 0, "given back at the end");

    // What a call says goes before it.
    let gpu = stand_in()?;
    let scope = memory::peak_scope(gpu);
    let options = options(gpu).chunk_size(2usize).prefetch_buffers(1usize);
    let options = options.cleanup_every(0usize).final_cleanup(false);
    process_in_chunks_with(&x, options, |rows| rows.sum_with(1))?;
    let peak = scope.allocated_bytes_peak();
    assert!((2 * ROW..2 * ROW + 4096).contains(&peak), "{peak}");
    assert!(memory::memory_reserved(gpu) >= 2 * ROW, "kept");

    // Batches, with one buffer: what is cached goes back after every second one.
    let gpu = stand_in()?;
    let rows = (0..4).map(|at| x.narrow(0, at, 1)).collect::<Result<Vec<_>>>()?;
    let mut reserved = Vec::new();
    let evaluation = EvaluateOptions::new().device(gpu).prefetch_buffers(1usize);
    evaluate_with(rows.clone().into_iter().map(Ok), evaluation, |batch| {
        reserved.push(memory::memory_reserved(gpu));
        let twice = batch.mul(2.0)?;
        drop(batch);
        twice.sum()?.item::<f32>()
    })?;
    assert!(reserved[1] > reserved[0], "the first batch's memory is kept: {reserved:?}");
    assert_eq!(reserved[2], reserved[0], "and given back after the second");
    assert_eq!(memory::memory_reserved(gpu), 0);

    // A prefetcher has as many batches on the device as there are buffers.
    let gpu = stand_in()?;
    let scope = memory::peak_scope(gpu);
    let prefetcher = Prefetcher::new(rows.into_iter().map(Ok), gpu)?;
    assert_eq!(prefetcher.streams().len(), 3);
    for batch in prefetcher {
        drop(batch?);
    }
    assert_eq!(scope.allocated_bytes_peak(), 3 * ROW);
    Ok(())
}
