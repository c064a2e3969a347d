//! Finds the largest batch that a limit has room for without any memory: a dry device takes the
//! same path as the real one, and refuses what the real one would refuse. Then the real one shows
//! it. `cargo run --release --example largest_batch`

use std::error::Error;
use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{device, memory};

const LIMIT_BYTES: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout().lock())
}

/// The whole program; what it says goes to `out`.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let dry = device::dry(Device::cpu())?;
    memory::set_limit(dry, Some(LIMIT_BYTES));
    let (mut fits, mut fails) = (0, 1);
    while train(dry, fails)? {
        (fits, fails) = (fails, fails * 2);
    }
    while fails - fits > 1 {
        let batch = fits + (fails - fits) / 2;
        if train(dry, batch)? { fits = batch } else { fails = batch }
    }
    writeln!(out, "dry run: {fits} rows fit into {} MiB, {fails} do not", LIMIT_BYTES >> 20)?;

    let cpu = device::private_cpu(&Default::default())?;
    memory::set_limit(cpu, Some(LIMIT_BYTES));
    for batch in [fits, fails] {
        let outcome = if train(cpu, batch)? { "done" } else { "out of memory" };
        writeln!(out, "real run: {batch} rows: {outcome}")?;
    }
    Ok(())
}

/// Two training steps with `batch` rows on an empty device; whether there was room.
fn train(device: Device, batch: i64) -> Result<bool> {
    memory::empty_cache(device);
    match steps(device, batch) {
        Ok(()) => Ok(true),
        Err(error) if error.is_out_of_memory() => Ok(false),
        Err(error) => Err(error),
    }
}

fn steps(device: Device, batch: i64) -> Result<()> {
    let first = Tensor::ones(&[128, 256], (DType::F32, device))?.requires_grad_(true)?;
    let second = Tensor::ones(&[256, 16], (DType::F32, device))?.requires_grad_(true)?;
    let rows = Tensor::ones(&[batch, 128], (DType::F32, device))?;
    for _ in 0..2 {
        rows.matmul(&first)?.tanh()?.matmul(&second)?.mean()?.backward()?;
        for weight in [&first, &second] {
            let gradient = weight.grad().expect("backward gave every leaf a gradient");
            no_grad(|| weight.sub_(&gradient.mul(0.1)?).map(drop))?;
            weight.set_grad(None)?;
        }
    }
    Ok(())
}
