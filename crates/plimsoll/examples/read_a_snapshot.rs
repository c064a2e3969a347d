//! Reads a memory snapshot and says where the memory went: PyTorch's
//! (`torch.cuda.memory._dump_snapshot`) if a file is named, otherwise one that this program records
//! of itself while it leaks. Reading is the crate `plimsoll-report`, which needs no GPU. `cargo run
//! --example read_a_snapshot -- snapshot.pickle`

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use plimsoll::memory::{self, HistoryLevel, set_step};
use plimsoll::prelude::*;
use plimsoll::{device, memory::annotate};
use plimsoll_report::Report;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    run(&mut std::io::stdout().lock(), file)
}

/// The whole program; what it says goes to `out`.
pub(crate) fn run(out: &mut impl Write, file: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let report = match file {
        Some(file) => Report::of(plimsoll_report::open(&file)?, file.display().to_string()),
        None => Report::of(plimsoll_report::read(&recorded()?)?, "this program"),
    };
    write!(out, "{}", plimsoll_report::text(&report))?;
    Ok(())
}

/// The snapshot of a training loop that keeps the loss of every step, and with it every step's
/// graph.
fn recorded() -> Result<Vec<u8>> {
    let cpu = device::private_cpu(&Default::default())?;
    memory::record_memory_history(cpu, HistoryLevel::All, 10_000);
    let weight = Tensor::ones(&[256, 256], (DType::F32, cpu))?.requires_grad_(true)?;
    let rows = Tensor::ones(&[512, 256], (DType::F32, cpu))?.mark_input();
    let mut losses = Vec::new();
    for step in 1..=8 {
        set_step(step);
        let _span = annotate(format!("step {step}"));
        losses.push(rows.matmul(&weight)?.tanh()?.mean()?);
    }
    let mut pickle = Vec::new();
    memory::snapshot(cpu).write_pickle(&mut pickle)?;
    Ok(pickle)
}
