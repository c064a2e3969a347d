//! Any bytes as a `.pt`, and any bytes as its pickle: an error or a value, never a panic; what is
//! read can be written and reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_files::{Source, load_from, write};
use plimsoll_tensor::Device;

/// An archive of one pickle and one storage, so that most bytes reach the machine.
fn archive(pickle: &[u8]) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in [("x/data.pkl", pickle), ("x/data/0", &[0; 64])] {
        let start = file.len() as u32;
        let facts = |out: &mut Vec<u8>| {
            out.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((name.len() as u32).to_le_bytes());
        };
        file.extend(b"PK\x03\x04");
        facts(&mut file);
        file.extend(name.as_bytes());
        file.extend(bytes);
        list.extend(b"PK\x01\x02\x14\x00");
        facts(&mut list);
        list.extend([0; 10]);
        list.extend(start.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (start, bytes) = (file.len() as u32, list.len() as u32);
    file.extend(list);
    file.extend(b"PK\x05\x06\0\0\0\0\x02\0\x02\0");
    file.extend(bytes.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    file
}

fn read(file: Vec<u8>) {
    match load_from(Source::from(file), false, &mut |_| Ok(Device::cpu())) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(value) => {
            let mut written = Vec::new();
            // One storage under two dtypes is read, and cannot be written.
            if write(&mut written, &value).is_ok() {
                let again = load_from(Source::from(written), false, &mut |_| Ok(Device::cpu()));
                assert!(again.is_ok(), "what was written does not read");
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes.to_vec());
    read(archive(bytes));
});
