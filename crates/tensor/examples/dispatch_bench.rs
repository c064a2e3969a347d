//! Nanoseconds of an add of four elements, recording off: what dispatch costs, on one thread and on
//! two at once.
//!
//! `cargo run --release -p plimsoll-tensor --example dispatch_bench -- [adds] [threads]`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use plimsoll_tensor::*;

/// Nanoseconds of one add: the least and the median of many short rounds.
fn adds(count: u32) -> Result<(f64, f64)> {
    const ROUNDS: u32 = 41;
    let x = Tensor::ones(&[4], DType::F32)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..count / ROUNDS {
            drop(black_box(no_grad(|| x.add(&x))?));
        }
        rounds.push(start.elapsed().as_nanos() as f64 / f64::from(count / ROUNDS));
    }
    rounds.sort_by(f64::total_cmp);
    Ok((rounds[0], rounds[ROUNDS as usize / 2]))
}

fn main() -> Result<()> {
    let number = |place| std::env::args().nth(place).and_then(|text| text.parse::<u32>().ok());
    let (count, threads) = (number(1).unwrap_or(200_000), number(2).unwrap_or(1));
    for _ in 0..5 {
        let times = std::thread::scope(|scope| -> Result<Vec<(f64, f64)>> {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| adds(count))).collect();
            running.into_iter().map(|thread| thread.join().expect("adds do not panic")).collect()
        })?;
        println!("{times:.1?} ns");
    }
    Ok(())
}
