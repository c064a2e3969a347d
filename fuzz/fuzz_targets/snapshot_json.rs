//! Any text as a snapshot in JSON: an error with its place or a snapshot, never a panic; what is
//! read can be written, reads back, and can be reported.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_report::{Limits, Report, html, read_with, text, write_json};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { fixed_bytes: 1 << 20, ..Limits::default() };
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return;
    }
    match read_with(bytes, &limits) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(snapshot) => {
            let mut written = Vec::new();
            if let Err(error) = write_json(&snapshot, &mut written) {
                panic!("writing to memory failed: {error}");
            }
            if let Err(error) = plimsoll_report::read(&written) {
                panic!("what was written does not read: {error}");
            }
            let report = Report::of(snapshot, "fuzz");
            assert!(!text(&report).is_empty() && !html(&report).is_empty());
        }
    }
});
