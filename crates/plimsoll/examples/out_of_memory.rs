//! Runs out of memory, prints why, and goes on with smaller pieces. Nothing is lost by the error:
//! what the failed call had taken is free again. `cargo run --example out_of_memory`

use std::error::Error;
use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{device, memory};

const ROWS: i64 = 65_536;
const COLUMNS: i64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout().lock())
}

/// The whole program; what it says goes to `out`.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let cpu = device::private_cpu(&Default::default())?;
    memory::set_limit(cpu, Some(48 << 20));
    let table = Tensor::ones(&[ROWS, COLUMNS], (DType::F32, cpu))?.mark_input(); // 16 MiB

    let mut rows = ROWS;
    let total = loop {
        let live = memory::memory_allocated(cpu);
        match sum_of_scores(&table, rows) {
            Ok(total) => break total,
            Err(error) if error.is_out_of_memory() => {
                let report = error.detail::<memory::OutOfMemory>().ok_or("it has a report")?;
                writeln!(
                    out,
                    "{rows} rows at once do not fit: {} bytes more were asked for, {} are allocated",
                    report.requested_bytes, report.allocated_bytes
                )?;
                if rows == ROWS {
                    writeln!(out, "{error}\n")?;
                }
                assert_eq!(memory::memory_allocated(cpu), live, "the failed call left nothing");
                rows /= 2;
            }
            Err(error) => return Err(error.into()),
        }
    };
    writeln!(out, "with {rows} rows at a time the sum is {total}")?;
    Ok(())
}

/// The sum of `exp(x) * x - x` over the table, `rows` rows at a time. Each piece needs several
/// results of its size.
fn sum_of_scores(table: &Tensor, rows: i64) -> Result<f64> {
    let mut total = 0.0;
    for first in (0..ROWS).step_by(rows as usize) {
        let piece = table.narrow(0, first, rows)?;
        let scores = piece.exp()?.mul(&piece)?.sub(&piece)?;
        total += scores.to(DType::F64)?.sum()?.item::<f64>()?;
    }
    Ok(total)
}
