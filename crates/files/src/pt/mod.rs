//! PyTorch's `.pt` files: a zip archive with a pickle (`data.pkl`) and the storages that its
//! tensors lie in (`data/0`, ...).
//!
//! Reading: `zip` finds the entries, `machine.rs` runs the pickle into `heap.rs` (what calls make
//! is in `calls.rs`, which globals there are in `globals.rs`), and `build.rs` turns that into
//! values and storages into tensors. Writing is `write.rs`.

mod build;
mod calls;
mod globals;
mod heap;
mod machine;
mod write;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Site, enter_operation, with_site};
use plimsoll_tensor::device;

use crate::fault::{bad, in_file};
use crate::source::Source;
use crate::zip::{Archive, Entry};
use crate::{Value, atomic};

/// How a pickle of the format before PyTorch 1.6 begins: with a number that tells it.
const LEGACY: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
/// The newest version of the archive that PyTorch writes, and reads.
const NEWEST_VERSION: u64 = 10;

plimsoll_tensor::options! {
    /// How [`load_with`] reads a file.
    LoadOptions {
        /// Where tensors go, whatever the file says; `None`: where the file says they were.
        device: Option<Device> = None,
        /// Whether tensors in host memory lie on the mapped file: nothing is read until it is used,
        /// and what is written stays in this process. They count as external bytes.
        mmap: bool = false,
    }
}

/// Writes a value to a file that `torch.load` reads, with `weights_only` as well. The file is
/// replaced as a whole; see [`crate::replace`].
///
/// ```
/// use plimsoll_files::{Value, load, save};
/// use plimsoll_tensor::{DType, Device, Tensor};
/// let path = std::env::temp_dir().join(format!("plimsoll-save-{}.pt", std::process::id()));
/// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
/// save(&path, &Value::from(vec![x.clone(), x.t()?]))?; // two views, one storage
/// let read = load(&path, Device::cpu())?;
/// let [x, y] = read.as_list().unwrap() else { unreachable!() };
/// let (x, y) = (x.as_tensor().unwrap(), y.as_tensor().unwrap());
/// assert!(x.shares_storage_with(y));
/// assert_eq!(y.strides(), [1, 3]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn save(path: impl AsRef<Path>, value: &Value) -> Result<()> {
    with_site(Site::caller(), || atomic::replace(path, |out| write(out, value)))
}

/// Writes what [`save`] writes, to anywhere.
///
/// ```
/// let mut bytes = Vec::new();
/// plimsoll_files::write(&mut bytes, &"x".into())?;
/// assert!(bytes.starts_with(b"PK"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn write(out: &mut dyn Write, value: &Value) -> Result<()> {
    with_site(Site::caller(), || {
        let _named = enter_operation("save");
        write::archive(value, out)
    })
}

/// Reads a file that `torch.save` or [`save`] wrote, with its tensors on `device`. Nothing in it is
/// run: what is not data is an error. Each storage is copied once, from the mapped file.
#[track_caller]
pub fn load(path: impl AsRef<Path>, device: Device) -> Result<Value> {
    let site = Site::caller();
    with_site(site, || load_with(path, LoadOptions::new().device(device)))
}

/// As [`load`], with options.
///
/// ```
/// use plimsoll_files::{LoadOptions, Value, load_with, save};
/// use plimsoll_tensor::{DType, Tensor, memory};
/// let path = std::env::temp_dir().join(format!("plimsoll-map-{}.pt", std::process::id()));
/// save(&path, &Tensor::ones(&[1000], DType::F32)?.into())?;
/// let read = load_with(&path, LoadOptions::new().mmap(true))?;
/// let x = read.as_tensor().unwrap();
/// assert_eq!(memory::arena(x.device()).stats().external_bytes.current, 4000);
/// x.zero_()?; // a private copy of the pages: the file stays as it is
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn load_with(path: impl AsRef<Path>, options: LoadOptions) -> Result<Value> {
    let path = path.as_ref();
    with_site(Site::caller(), || {
        let source = Source::open(path)?;
        let mut place = |location: &str| match options.device {
            Some(device) => Ok(device),
            None => located(location),
        };
        load_from(source, options.mmap, &mut place).map_err(|error| in_file(path, error))
    })
}

/// Reads a file's bytes. `place` says where tensors go that were at a location (`cpu`, `cuda:0`);
/// with `mmap`, those in host memory lie on the file.
#[track_caller]
pub fn load_from(
    source: Source,
    mmap: bool,
    place: &mut dyn FnMut(&str) -> Result<Device>,
) -> Result<Value> {
    with_site(Site::caller(), || {
        let _named = enter_operation("load");
        check_start(source.bytes())?;
        let archive = Archive::read(source.bytes())?;
        let records = records(&archive)?;
        let pickle = records.get("data.pkl").map(|entry| entry.range.clone());
        let pickle = pickle.ok_or_else(|| bad("the archive has no entry `data.pkl`"))?;
        let pickle = &source.bytes()[pickle];
        check_records(&source, &records)?;
        let (heap, item) = machine::run(pickle)?;
        let entries = records
            .iter()
            .filter_map(|(name, entry)| Some((name.strip_prefix("data/")?, *entry)))
            .collect();
        let storages = build::Storages { source: &source, entries, place, on_file: mmap };
        build::value(&heap, item, pickle.len(), storages)
    })
}

/// Entries by the name within the archive's one folder.
fn records(archive: &Archive) -> Result<HashMap<&str, &Entry>> {
    let first = archive.entries().first().ok_or_else(|| bad("the archive is empty"))?;
    let folder = first.name.split_once('/').map(|(folder, _)| folder);
    let folder = folder.ok_or_else(|| {
        bad(format!(
            "entry `{}` is in no folder: torch.save did not write this archive",
            first.name
        ))
    })?;
    let within = archive
        .entries()
        .iter()
        .filter_map(|entry| Some((entry.name.strip_prefix(folder)?.strip_prefix('/')?, entry)));
    Ok(within.collect())
}

/// What the archive says of itself.
fn check_records(source: &Source, records: &HashMap<&str, &Entry>) -> Result<()> {
    let text = |name: &str| {
        let bytes = &source.bytes()[records.get(name)?.range.clone()];
        // Short, whatever the entry claims.
        Some(String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).trim().to_string())
    };
    if records.contains_key("constants.pkl") {
        return Err(Error::unsupported(
            "load",
            "this is a TorchScript archive, a program: load it in PyTorch and save its state_dict",
        ));
    }
    if let Some(order) = text("byteorder").filter(|order| order != "little") {
        let what =
            format!("its storages are {order}-endian: save it again on a little-endian machine");
        return Err(Error::unsupported("load", what));
    }
    match text("version").map(|version| version.parse::<u64>()) {
        None | Some(Ok(0..=NEWEST_VERSION)) => Ok(()),
        Some(_) => Err(bad(format!(
            "entry `version` is not a number up to {NEWEST_VERSION}: a newer PyTorch wrote this file"
        ))),
    }
}

/// Tells files that are plainly something else what they are.
fn check_start(bytes: &[u8]) -> Result<()> {
    let what = match bytes {
        [b'P', b'K', 3, 4, ..] => return Ok(()),
        [] => "an empty file",
        _ if bytes.starts_with(LEGACY) => {
            "PyTorch's legacy format (before 1.6, or with _use_new_zipfile_serialization=False), which is not read: \
             load it in PyTorch and save it again"
        }
        // A tar archive, the format before that one.
        _ if bytes.get(257..262) == Some(b"ustar") => {
            "PyTorch's oldest format, a tar archive, which is not read: load it in PyTorch and save it again"
        }
        [0x80, ..] => "a plain pickle, not an archive of torch.save",
        [_, _, _, _, _, _, _, _, b'{', ..] => {
            "a safetensors file: read it with safetensors::load_file"
        }
        _ => "not a zip archive of torch.save",
    };
    Err(bad(format!("this is {what}")))
}

/// The device of a location, if it is there.
fn located(location: &str) -> Result<Device> {
    device::named(location).map_err(|error| {
        let why = format!(
            "the file has tensors on `{location}`, which is not here: name the device that they shall go to"
        );
        Error::device("load", why).because(error)
    })
}
