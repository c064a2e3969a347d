//! Where the sample files are, and what PyTorch says about each.

#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) mod made_trace;
#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) mod scenes;

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use plimsoll_report::{Snapshot, open};
use serde_json::Value;

/// The file of a sample. Each has a folder of its own, with the snapshot and what PyTorch says
/// about it.
pub(crate) fn sample(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    folder.join(format!("{name}.pickle.gz"))
}

/// The bytes of a file before it was packed: what a reader of pickles itself sees.
#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Every sample, in order of names.
#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) fn samples() -> Vec<(PathBuf, Snapshot)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| sample(&entry.unwrap().file_name().to_string_lossy()))
        .filter(|path| !path.ends_with("layouts/layouts.pickle.gz"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 3, "samples are missing");
    paths.into_iter().map(|path| (path.clone(), open(path).unwrap())).collect()
}

#[allow(dead_code, reason = "each test file takes what it needs of this")]
/// What `make_golden.py` wrote about a sample.
pub(crate) fn golden(path: &Path) -> Value {
    let text = std::fs::read_to_string(path.with_file_name("golden.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}
