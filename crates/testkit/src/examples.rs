//! The training programs of `crates/plimsoll/examples`, by name, and what their steps take on a
//! device. They are the files that users read; the tests over them are `tests/examples.rs`, and on
//! a GPU the step `examples` of the bundle.

// Each program is a file of its own and has what they share as a module of its own.
#![allow(clippy::duplicate_mod)]

use std::io::Write;

use plimsoll_cuda::Properties;
use plimsoll_memory::Configuration;
use plimsoll_tensor::{Device, Result, Tensor, device, memory};

#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/cnn.rs"]
mod cnn;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/dqn.rs"]
mod dqn;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/gan.rs"]
mod gan;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/gpt.rs"]
mod gpt;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/lstm.rs"]
mod lstm;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../../plimsoll/examples/mlp.rs"]
mod mlp;

/// Is told the number of a step and its loss.
pub type EachStep<'a> = &'a mut dyn FnMut(u64, &Tensor) -> Result<()>;

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The name of its file.
    pub name: &'static str,
    /// Trains for some steps on a device, and drops all there was.
    pub train: fn(Device, u64, EachStep<'_>) -> Result<()>,
    /// The program with the words of its command line; what it says is written.
    pub run: fn(&mut dyn Iterator<Item = String>, &mut dyn Write) -> Result<()>,
}

/// Every program.
pub const EXAMPLES: [Example; 6] = [
    Example { name: "mlp", train: |on, n, each| mlp::train(on, n, each).map(drop), run: mlp::run },
    Example { name: "cnn", train: |on, n, each| cnn::train(on, n, each).map(drop), run: cnn::run },
    Example {
        name: "lstm",
        train: |on, n, each| lstm::train(on, n, each).map(drop),
        run: lstm::run,
    },
    Example { name: "gpt", train: |on, n, each| gpt::train(on, n, each).map(drop), run: gpt::run },
    Example { name: "gan", train: |on, n, each| gan::train(on, n, each).map(drop), run: gan::run },
    Example { name: "dqn", train: |on, n, each| dqn::train(on, n, each).map(drop), run: dqn::run },
];

/// The program of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> Example {
    let found = EXAMPLES.into_iter().find(|example| example.name == name);
    found.unwrap_or_else(|| panic!("`{name}` is no example"))
}

/// What some steps took on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The most that was in use.
    pub allocated_bytes: usize,
    /// The most that was asked of the source.
    pub reserved_bytes: usize,
    /// In use after the last step.
    pub held_bytes: usize,
    /// Allocations of all steps.
    pub allocations: i64,
}

/// Runs some steps of a program on a device that nothing else uses; nothing is left on it then, nor
/// on the host.
pub fn taken(example: Example, device: Device, steps: u64) -> Result<Taken> {
    let on_host = memory::memory_allocated(Device::CPU);
    memory::empty_cache(device);
    let arena = memory::arena(device);
    arena.reset_peak_stats();
    arena.reset_accumulated_stats();
    let mut held_bytes = 0;
    (example.train)(device, steps, &mut |_, _| {
        held_bytes = memory::memory_allocated(device);
        Ok(())
    })?;
    device::synchronize(device)?;
    let stats = arena.stats();
    assert_eq!(memory::memory_allocated(device), 0, "{}: live on {device}", example.name);
    assert_eq!(memory::memory_allocated(Device::CPU), on_host, "{}: on the host", example.name);
    Ok(Taken {
        allocated_bytes: stats.allocated_bytes.all.peak as usize,
        reserved_bytes: stats.reserved_bytes.all.peak as usize,
        held_bytes,
        allocations: stats.allocation.all.allocated,
    })
}

/// Every program takes the same on a GPU and in a dry run of it, which is one by name where the
/// table of models knows this GPU. Gives a line for each.
pub fn a_dry_run_takes_what_a_gpu_takes(steps: u64) -> Result<Vec<String>> {
    let properties = device::properties(device::cuda(0)?)?;
    let is_known = Properties::named("h200").is_some_and(|named| named == properties);
    let mut lines = Vec::new();
    for example in EXAMPLES {
        let real = device::private_cuda_over(0, |source| source, Configuration::process()?)?;
        let dry = if is_known { device::dry_named("h200")? } else { device::dry(real)? };
        let (foretold, took) = (taken(example, dry, steps)?, taken(example, real, steps)?);
        assert_eq!(foretold, took, "{}", example.name);
        let Taken { allocated_bytes, reserved_bytes, held_bytes, .. } = took;
        lines.push(format!(
            "{:5} {allocated_bytes:>12} bytes allocated at the peak, {reserved_bytes:>12} reserved, {held_bytes:>12} held, {}",
            example.name,
            if is_known { "as foretold by dry:h200" } else { "as foretold by a dry run of this GPU" },
        ));
    }
    Ok(lines)
}
