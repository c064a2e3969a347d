//! What copying ahead gains: batches that take as long to copy as to compute on, one after the
//! other and with two and three buffers.
//!
//! `cargo run --release -p plimsoll-data --example overlap_bench -- [cuda | stand-in] [MiB]
//! [batches]`
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use plimsoll_data::{PrefetchOptions, Prefetcher};
use plimsoll_tensor::*;

/// A batch's computation: so many passes over it.
fn compute(batch: &Tensor, passes: u32) -> Result<()> {
    (0..passes).try_for_each(|_| batch.mul_(1.000_1).map(drop))
}

fn timed(work: impl FnOnce() -> Result<()>, device: Device) -> Result<Duration> {
    device::synchronize(device)?;
    let start = Instant::now();
    work()?;
    device::synchronize(device)?;
    Ok(start.elapsed())
}

/// How many passes take as long as a copy.
fn balanced(batch: &Tensor, device: Device) -> Result<u32> {
    let there = batch.to(device)?;
    compute(&there, 10)?;
    let copies = timed(|| (0..8).try_for_each(|_| batch.to(device).map(drop)), device)? / 8;
    let pass = timed(|| compute(&there, 200), device)? / 200;
    println!("a copy takes {copies:.2?}, a pass of the computation {pass:.2?}");
    Ok((copies.as_secs_f64() / pass.as_secs_f64()).round().max(1.0) as u32)
}

fn main() -> Result<()> {
    let argument = |place| std::env::args().nth(place);
    let device = match argument(1).as_deref() {
        Some("cuda") => device::cuda(0)?,
        _ => device::stand_in(Default::default())?,
    };
    let number = |place| argument(place).and_then(|text: String| text.parse::<i64>().ok());
    let (mebibytes, count) = (number(2).unwrap_or(32), number(3).unwrap_or(40));
    let batch = Tensor::ones(&[mebibytes << 18], DType::F32)?.pin_memory()?;
    let passes = balanced(&batch, device)?;
    let batches = || (0..count).map(|_| Ok(batch.clone()));
    for _ in 0..3 {
        let serial = timed(
            || {
                batches().try_for_each(|batch| {
                    compute(&batch?.to(device)?, passes)?;
                    device::synchronize(device)
                })
            },
            device,
        )?;
        print!("{count} batches of {mebibytes} MiB one after the other: {serial:.2?}");
        for buffers in [2usize, 3] {
            let options = PrefetchOptions::new().buffers(buffers);
            let ahead = timed(
                || {
                    Prefetcher::with_options(batches(), device, options)?
                        .try_for_each(|batch| compute(&batch?, passes))
                },
                device,
            )?;
            let share = ahead.as_secs_f64() / serial.as_secs_f64();
            print!("; {buffers} buffers: {ahead:.2?}, {share:.2} of it");
        }
        println!();
    }
    Ok(())
}
