//! Any bytes as a safetensors file: an error or tensors, never a panic; what is read is written as
//! bytes that read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_files::{LoadOptions, Source, safetensors};

fuzz_target!(|bytes: &[u8]| {
    // A header of the right length, so that most bytes reach what is behind it.
    for header in [bytes.len().min(64), bytes.len()] {
        let mut file = (header as u64).to_le_bytes().to_vec();
        file.extend(bytes);
        match safetensors::load(Source::from(file), LoadOptions::new()) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok((state, _)) => {
                let mut written = Vec::new();
                assert!(safetensors::save(&state, &mut written, &Default::default()).is_ok());
                let again = safetensors::load(Source::from(written), LoadOptions::new());
                assert!(again.is_ok_and(|(again, _)| again.len() == state.len()));
            }
        }
    }
});
