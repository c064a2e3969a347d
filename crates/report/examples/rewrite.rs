//! Reads a snapshot and writes it again: `rewrite FILE OUT.pickle` or `rewrite FILE OUT.json`. For
//! converting files, and for checking with PyTorch's own tool (`tests/check_written.py`) that what
//! is written opens there.

use std::fs::File;

use plimsoll_report::{open, write_json, write_pickle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rewrite FILE OUT.pickle | OUT.json".into());
    };
    let snapshot = open(from)?;
    let out = File::create(&to)?;
    match to.ends_with(".json") {
        true => write_json(&snapshot, out)?,
        false => write_pickle(&snapshot, out)?,
    }
    Ok(())
}
