//! Reports on snapshots and says how long it took: for each line `FILE COUNT` on the input, the
//! file is read, analysed and reported as text that often, and the microseconds are printed. `cargo
//! xtask bench report` talks to it.

// This is a program for a terminal.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, Write};
use std::time::Instant;

use plimsoll_report::{Report, open, text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (file, count) = line.rsplit_once(' ').ok_or("expected FILE COUNT")?;
        let start = Instant::now();
        let mut bytes = 0;
        for _ in 0..count.parse::<u32>()? {
            bytes += text(&Report::of(open(file)?, file)).len();
        }
        assert!(bytes > 0, "a report is never empty");
        println!("{:.1}", start.elapsed().as_secs_f64() * 1e6);
        std::io::stdout().flush()?;
    }
    Ok(())
}
