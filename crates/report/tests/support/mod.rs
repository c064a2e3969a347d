//! Where the sample files are, and what PyTorch says about each.

#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) mod made_trace;
#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) mod scenes;

use std::path::{Path, PathBuf};

use plimsoll_report::{Snapshot, open};
use serde_json::Value;

/// The file of a sample, packed or not.
pub(crate) fn sample(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let plain = folder.join(format!("{name}.pickle"));
    if plain.exists() { plain } else { folder.join(format!("{name}.pickle.gz")) }
}

/// Every sample, in order of names.
#[allow(dead_code, reason = "each test file takes what it needs of this")]
pub(crate) fn samples() -> Vec<(PathBuf, Snapshot)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".pickle") || name.ends_with(".pickle.gz")
        })
        .collect();
    paths.sort();
    assert!(paths.len() >= 3, "samples are missing");
    paths.into_iter().map(|path| (path.clone(), open(path).unwrap())).collect()
}

#[allow(dead_code, reason = "each test file takes what it needs of this")]
/// What `make_golden.py` wrote about a sample.
pub(crate) fn golden(path: &Path) -> Value {
    let name = path.file_name().unwrap().to_string_lossy();
    let name = format!("{}.golden.json", name.split('.').next().unwrap());
    let text = std::fs::read_to_string(path.with_file_name(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}
