//! Watches the peaks of parts of a program. Each part has a scope with a peak of its own; scopes
//! nest, and no reset elsewhere disturbs them. `cargo run --example peaks_of_a_region`

use std::error::Error;
use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{device, memory};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout().lock())
}

/// The whole program; what it says goes to `out`.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let cpu = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[256, 1024], (DType::F32, cpu))?; // 1 MiB
    let w = Tensor::ones(&[256, 1024], (DType::F32, cpu))?.requires_grad_(true)?;
    let before = memory::memory_allocated(cpu);
    writeln!(out, "before    {:5} KiB live", before >> 10)?;

    let step = memory::peak_scope(cpu);
    let forward = memory::peak_scope(cpu);
    // Three results of 1 MiB; the product is dropped as soon as its exponential is there.
    let loss = x.mul(&w)?.exp()?.sum()?;
    let forward_peak = forward.allocated_bytes_peak();
    drop(forward);
    let held = memory::memory_allocated(cpu);
    writeln!(out, "forward   {:5} KiB more at its peak", (forward_peak - before) >> 10)?;
    writeln!(out, "held      {:5} KiB by the graph", (held - before) >> 10)?;

    let backward = memory::peak_scope(cpu);
    loss.backward()?;
    writeln!(
        out,
        "backward  {:5} KiB more at its peak",
        (backward.allocated_bytes_peak() - before) >> 10
    )?;
    drop(backward);

    // Whoever resets the program's own peak does not touch the scope's.
    memory::reset_peak_memory_stats(cpu);
    let whole = step.allocated_bytes_peak() - before;
    writeln!(out, "the step  {:5} KiB more at its peak", whole >> 10)?;
    drop(loss);
    let gradient = memory::memory_allocated(cpu) - before;
    writeln!(out, "after     {:5} KiB: the gradient", gradient >> 10)?;
    Ok(())
}
