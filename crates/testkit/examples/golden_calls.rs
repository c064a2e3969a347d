//! Writes every instance of every case to standard output, one JSON object a line, for
//! `golden/make_golden.py` to run in PyTorch.

use std::io::{self, BufWriter, Write};

use plimsoll_testkit::cases;
use plimsoll_testkit::golden::inputs_checksum;
use serde_json::json;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for case in cases::all() {
        for instance in case.instances() {
            let inputs: Vec<_> = instance
                .inputs()
                .iter()
                .map(|placed| {
                    let hex: String =
                        placed.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                    json!({
                        "dtype": placed.dtype.name(), "storage": hex, "shape": placed.shape,
                        "strides": placed.strides, "offset": placed.offset,
                    })
                })
                .collect();
            // What is written besides is among the results where a row asks for it.
            let written: &[usize] = if case.returns_written { &case.writes } else { &[] };
            let line = json!({
                "family": case.family, "name": instance.name(), "torch": case.torch,
                "key": instance.key().to_string(), "checksum": inputs_checksum(&instance).to_string(),
                "dtype": instance.dtype.name(), "other": instance.other.name(),
                "taken": instance.taken,
                "may_refuse": case.may_refuse || instance.writes_to_expanded(), "writes": written, "inputs": inputs,
            });
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}
