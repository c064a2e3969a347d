//! The CUDA kernels measured: medians of device time for the work that `torch_gpu.py` does in
//! PyTorch on the same GPU, one line each, name and microseconds; and Plimsoll's side of
//! `gpu_rows.py`.

use std::io::BufRead;
use std::time::Instant;

use plimsoll_tensor::device::synchronize;
use plimsoll_tensor::{DType, Device, NoGrad, Result, Tensor, device};
use plimsoll_testkit::workloads::{self, Work};

/// Reads `NAME ITERATIONS` lines, runs that work that often and answers with the microseconds that
/// it took, or with why it cannot.
pub(super) fn serve() -> Result<()> {
    let cuda = device::cuda(0)?;
    let mut current: Option<(String, Work)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (name, count) = line.rsplit_once(' ').unwrap_or((&line, "1"));
        if current.as_ref().is_none_or(|(have, _)| have != name) {
            // The inputs of the previous work go first, so that only one set is in memory.
            drop(current.take());
            match workloads::work(name, cuda) {
                Ok(work) => current = work.map(|work| (name.to_string(), work)),
                Err(error) => {
                    println!("{}", error.to_string().replace('\n', " "));
                    continue;
                }
            }
        }
        let Some((_, work)) = &mut current else {
            println!("there is no such work");
            continue;
        };
        match timed(cuda, count.parse().unwrap_or(1), work) {
            Ok(us) => println!("{us}"),
            Err(error) => println!("{}", error.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

/// Microseconds of `count` turns, with the queue drained before and after.
fn timed(device: Device, count: usize, work: &mut Work) -> Result<f64> {
    synchronize(device)?;
    let start = Instant::now();
    for _ in 0..count {
        work()?;
    }
    synchronize(device)?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// The median of 15 timings of `repeat` calls each, in microseconds a call. The queue is drained
/// before and after.
fn time(device: Device, repeat: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..3 {
        call()?;
    }
    let mut rounds = Vec::new();
    for _ in 0..15 {
        synchronize(device)?;
        let start = Instant::now();
        for _ in 0..repeat {
            call()?;
        }
        synchronize(device)?;
        rounds.push(start.elapsed().as_secs_f64() * 1e6 / repeat as f64);
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[rounds.len() / 2])
}

/// Runs and prints all of it.
pub(super) fn run() -> Result<()> {
    let cuda = device::cuda(0)?;
    let options = (DType::F32, cuda);
    let _mode = NoGrad::enter();
    let report = |name: &str, us: f64| println!("plimsoll {name:32} {us:10.1} us");

    let x = Tensor::ones(&[100_000_000], options)?;
    report("x + 1, 400 MB", time(cuda, 20, || x.add(1.0).map(drop))?);
    report("x.add_(1), 400 MB", time(cuda, 20, || x.add_(1.0).map(drop))?);
    drop(x);
    let m = Tensor::ones(&[8192, 8192], options)?;
    report("relu 8192x8192", time(cuda, 20, || m.relu().map(drop))?);
    report("exp 8192x8192", time(cuda, 20, || m.exp().map(drop))?);
    report("t() + 1 8192x8192", time(cuda, 20, || m.t()?.add(1.0).map(drop))?);
    report("t().contiguous() 8192x8192", time(cuda, 20, || m.t()?.contiguous().map(drop))?);
    report("sum 8192x8192", time(cuda, 20, || m.sum().map(drop))?);
    report("layer_norm 8192x8192", time(cuda, 20, || m.layer_norm(&[8192]).map(drop))?);
    drop(m);
    let a = Tensor::ones(&[4096, 4096], (DType::BF16, cuda))?;
    let us = time(cuda, 20, || a.matmul(&a).map(drop))?;
    report("matmul bf16 4096", us);
    println!("         {:32} {:10.1} TFLOP/s", "", 2.0 * 4096f64.powi(3) / us / 1e6);
    let small = Tensor::ones(&[4], options)?;
    report("add of 4 elements (host and device)", time(cuda, 2000, || small.add(1.0).map(drop))?);
    report(
        "cached 64 MB allocation and free",
        time(cuda, 2000, || Tensor::empty(&[16 << 20], options).map(drop))?,
    );
    Ok(())
}
