//! Any bytes as a pickle: an error or a snapshot, never a panic and never more memory than the
//! limits allow; what is read can be written, reads back with as many events, and can be reported.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_report::{Limits, Report, json, read_with, text, write_pickle};

fuzz_target!(|bytes: &[u8]| {
    // Always a pickle: JSON and gzip have their own readers, and most bytes should reach this one.
    let mut file = vec![0x80, 4];
    file.extend_from_slice(bytes);
    let limits = Limits { fixed_bytes: 1 << 20, ..Limits::default() };
    match read_with(&file, &limits) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(snapshot) => {
            let mut written = Vec::new();
            if let Err(error) = write_pickle(&snapshot, &mut written) {
                panic!("writing to memory failed: {error}");
            }
            match plimsoll_report::read(&written) {
                Ok(again) => assert_eq!(
                    again.traces.iter().map(|t| t.rows.len()).sum::<usize>(),
                    snapshot.traces.iter().map(|t| t.rows.len()).sum::<usize>()
                ),
                Err(error) => panic!("what was written does not read: {error}"),
            }
            let report = Report::of(snapshot, "fuzz");
            assert!(!text(&report).is_empty() && !json(&report).is_empty());
        }
    }
});
