//! The text that `plimsoll train` learns by default: this project's documentation and source, about
//! a megabyte, compressed. It is written into the tree and not made by a build, so that two builds
//! learn the same.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::run;

/// Where it lies.
const FILE: &str = "crates/cli/text/plimsoll.txt.gz";
/// It ends with the file that passes this.
const ENOUGH_BYTES: usize = 1_000_000;
/// Folders of what is read, in this order; a file of each in turn, so that the last part is like
/// the first.
const FOLDERS: &[&str] = &["docs", "crates/memory/src", "crates/tensor/src", "crates/report/src"];

/// Writes the text.
pub(crate) fn write() -> Result<(), String> {
    let root = run::root();
    let mut lists = Vec::new();
    for folder in FOLDERS {
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files)?;
        files.sort();
        lists.push(files.into_iter());
    }
    let mut text = Vec::new();
    let mut left = true;
    while left && text.len() < ENOUGH_BYTES {
        left = false;
        for list in &mut lists {
            let Some(file) = list.next() else { continue };
            left = true;
            text.extend(fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?);
            text.push(b'\n');
        }
    }
    let path = root.join(FILE);
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let mut encoder = GzEncoder::new(File::create(&path)?, Compression::best());
        encoder.write_all(&text)?;
        encoder.finish().map(drop)
    };
    write().map_err(|e| format!("{FILE}: {e}"))?;
    println!("{FILE}: {} bytes of text", text.len());
    Ok(())
}

/// The texts below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let told = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "md") {
            files.push(path);
        }
    }
    Ok(())
}
