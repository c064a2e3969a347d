//! Reading snapshot files: which format it is, then the reader of that format. All of them fill one
//! heap (`heap.rs`), whose parts `layout.rs` turns into a snapshot. No file can make a reader run
//! code, recurse, or take memory without bound.

mod heap;
mod json;
mod keys;
mod layout;
mod limits;
mod pickle;
mod rows;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use plimsoll_core::{Error, ErrorKind, Result};

pub use limits::Limits;

use crate::snapshot::Snapshot;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a snapshot file: a pickle or JSON of PyTorch's layout, as it is or through gzip.
pub fn open(path: impl AsRef<Path>) -> Result<Snapshot> {
    let path = path.as_ref();
    let failed = |cause: std::io::Error| {
        Error::new(ErrorKind::Io, format!("cannot read `{}`", path.display())).because(cause)
    };
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(failed)?;
    // One allocation of the right size: growing by doubling would hold half the file twice.
    let len = file.metadata().map_err(failed)?.len();
    bytes.try_reserve_exact(usize::try_from(len).unwrap_or(usize::MAX)).map_err(|_| {
        Error::invalid_argument(format!("`{}` is too large for memory", path.display()))
    })?;
    file.read_to_end(&mut bytes).map_err(failed)?;
    read_owned(bytes, &Limits::default()).map_err(|error| {
        Error::new(error.kind(), format!("cannot read `{}`", path.display())).because(error)
    })
}

/// Reads a snapshot from memory, with the usual limits.
pub fn read(bytes: &[u8]) -> Result<Snapshot> {
    read_with(bytes, &Limits::default())
}

/// Reads a snapshot from memory, with limits of one's own.
pub fn read_with(bytes: &[u8], limits: &Limits) -> Result<Snapshot> {
    match bytes.starts_with(&GZIP) {
        true => read_plain(&unfold(bytes, limits)?, limits, true),
        false => read_plain(bytes, limits, false),
    }
}

/// Like [`read_with`], but what is read gives its memory back before more is taken.
fn read_owned(bytes: Vec<u8>, limits: &Limits) -> Result<Snapshot> {
    if bytes.starts_with(&GZIP) {
        let unfolded = unfold(&bytes, limits)?;
        drop(bytes);
        return read_plain(&unfolded, limits, true);
    }
    read_plain(&bytes, limits, false)
}

fn unfold(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>> {
    let mut unfolded = Vec::new();
    let most = limits.unfolded_bytes as u64;
    let mut decoder = MultiGzDecoder::new(bytes).take(most.saturating_add(1));
    let read = decoder.read_to_end(&mut unfolded);
    read.map_err(|cause| bad_file(0, &format!("the gzip data is damaged: {cause}")))?;
    if unfolded.len() as u64 > most {
        return Err(bad_file(0, &format!("the gzip data unfolds into more than {most} bytes")));
    }
    Ok(unfolded)
}

fn read_plain(bytes: &[u8], limits: &Limits, gzip: bool) -> Result<Snapshot> {
    let is_json = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(bad_file(0, "the file is empty")),
        Some(b'{' | b'[') => true,
        Some(_) => false,
    };
    let (heap, root, mut format) = if is_json {
        let (heap, root) = json::run(bytes, limits)?;
        (heap, root, "json".to_string())
    } else {
        check_start(bytes)?;
        let (heap, root, protocol) = pickle::run(bytes, limits)?;
        (heap, root, format!("pickle {protocol}"))
    };
    let mut snapshot = layout::snapshot(heap, root).map_err(Error::invalid_argument)?;
    if gzip {
        format.push_str(", gzip");
    }
    snapshot.writer.format = format;
    Ok(snapshot)
}

/// Tells files that are plainly something else what they are.
fn check_start(bytes: &[u8]) -> Result<()> {
    let what = match bytes {
        [b'P', b'K', 3, 4, ..] => "a zip archive (a model saved with torch.save?)",
        [b'<', ..] => "a web page",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        [b'%', b'P', b'D', b'F', ..] => "a PDF",
        // Protocol 2 and later start with PROTO; earlier ones with a dictionary or a list.
        [0x80, ..] | [b'(' | b'}' | b']', ..] => return Ok(()),
        _ => "not a pickle, JSON or gzip file",
    };
    Err(bad_file(0, &format!("this is {what}, not a memory snapshot")))
}

/// An error in a file's bytes.
fn bad_file(at: usize, message: &str) -> Error {
    Error::invalid_argument(format!("at byte {at}: {message}"))
}
