//! Safetensors: a header that says where each tensor's bytes are, then the bytes. The functions
//! have the names and rules of the Python package's `safetensors.torch`: tensors are contiguous,
//! and no two share memory, because the format has neither strides nor storages.

mod header;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use plimsoll_core::{Error, ErrorKind, Result};
use plimsoll_memory::{Site, enter_operation, with_site};
use plimsoll_nn::StateDict;
use plimsoll_tensor::{Device, Tensor};

use crate::fault::in_file;
use crate::source::Source;
use crate::{LoadOptions, atomic, bytes_of};
use header::{DTYPES, Header, Info, METADATA};

/// Texts by name, beside the tensors.
pub type Metadata = BTreeMap<String, String>;

/// Writes tensors by name. The file is replaced as a whole; see [`crate::replace`].
///
/// ```
/// use plimsoll_files::safetensors::{load_file, save_file};
/// use plimsoll_nn::{Linear, Module};
/// use plimsoll_tensor::Device;
/// let path = std::env::temp_dir().join(format!("plimsoll-{}.safetensors", std::process::id()));
/// let linear = Linear::new(2, 3)?;
/// save_file(&linear.state_dict(), &path, &[("format", "pt")].into_iter().collect())?;
/// linear.load_state_dict(&load_file(&path, Device::cpu())?)?;
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn save_file(
    tensors: &StateDict,
    path: impl AsRef<Path>,
    metadata: &BTreeMap<&str, &str>,
) -> Result<()> {
    with_site(Site::caller(), || atomic::replace(path, |out| save(tensors, out, metadata)))
}

/// Writes what [`save_file`] writes, to anywhere.
#[track_caller]
pub fn save(
    tensors: &StateDict,
    out: &mut dyn Write,
    metadata: &BTreeMap<&str, &str>,
) -> Result<()> {
    with_site(Site::caller(), || {
        let _named = enter_operation("save_file");
        check_tensors(tensors)?;
        let mut sorted: Vec<(usize, &str, &Tensor)> = tensors
            .iter()
            .map(|(name, tensor)| {
                let rank = DTYPES.iter().position(|(_, dtype)| *dtype == tensor.dtype());
                (rank.unwrap_or(DTYPES.len()), name, tensor)
            })
            .collect();
        sorted.sort_by_key(|(rank, name, _)| (*rank, *name));
        let mut header = Header::default();
        header.metadata.extend(metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let mut next = 0;
        for (rank, name, tensor) in &sorted {
            let data_offsets = (next, next + tensor.nbytes());
            next = data_offsets.1;
            let dtype = DTYPES.get(*rank).map_or("", |(word, _)| word).to_string();
            let info = Info { dtype, shape: tensor.shape().to_vec(), data_offsets };
            header.tensors.push((name.to_string(), info));
        }
        out.write_all(&header::written(&header)?)?;
        sorted.iter().try_for_each(|(_, _, tensor)| bytes_of::write(tensor, out))
    })
}

/// Reads tensors by name onto `device`, each copied once from the mapped file.
#[track_caller]
pub fn load_file(path: impl AsRef<Path>, device: Device) -> Result<StateDict> {
    let site = Site::caller();
    with_site(site, || Ok(load_file_with(path, LoadOptions::new().device(device))?.0))
}

/// As [`load_file`], with options, and with the texts beside the tensors. The file names no
/// devices: without one, tensors are in host memory.
///
/// ```
/// use plimsoll_files::{LoadOptions, safetensors};
/// use plimsoll_nn::StateDict;
/// use plimsoll_tensor::{DType, Tensor};
/// let path = std::env::temp_dir().join(format!("plimsoll-m{}.safetensors", std::process::id()));
/// let mut state = StateDict::new();
/// state.insert("x", Tensor::arange(0, 3, 1, DType::I64)?);
/// safetensors::save_file(&state, &path, &[("epoch", "3")].into_iter().collect())?;
/// let (state, metadata) = safetensors::load_file_with(&path, LoadOptions::new().mmap(true))?;
/// assert_eq!(state.get("x").unwrap().to_vec::<i64>()?, [0, 1, 2]);
/// assert_eq!(metadata["epoch"], "3");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn load_file_with(
    path: impl AsRef<Path>,
    options: LoadOptions,
) -> Result<(StateDict, Metadata)> {
    let path = path.as_ref();
    with_site(Site::caller(), || {
        let source = Source::open(path)?;
        load(source, options).map_err(|error| in_file(path, error))
    })
}

/// Reads a file's bytes.
#[track_caller]
pub fn load(source: Source, options: LoadOptions) -> Result<(StateDict, Metadata)> {
    with_site(Site::caller(), || {
        let _named = enter_operation("load_file");
        let device = options.device.unwrap_or(Device::cpu());
        let (header, start) = header::read(source.bytes())?;
        let mut state = StateDict::new();
        for (name, info) in header.tensors {
            let (dtype, range) = info.place(&name, start)?;
            let flat = source.tensor(range, dtype, device, options.mmap);
            let flat =
                flat.ok_or_else(|| Error::invalid_argument(format!("`{name}` is cut short")))?;
            let shape: Vec<i64> = info.shape.iter().map(|size| *size as i64).collect();
            state.insert(name, flat?.view(&shape)?.detach());
        }
        Ok((state, header.metadata))
    })
}

/// What the format cannot hold, by name.
fn check_tensors(tensors: &StateDict) -> Result<()> {
    let mut by_storage: BTreeMap<usize, Vec<(&str, &Tensor)>> = BTreeMap::new();
    for (name, tensor) in tensors.iter() {
        if name == METADATA {
            let what =
                format!("`{METADATA}` is no name for a tensor: safetensors keeps texts there");
            return Err(Error::invalid_argument(what).in_operation("save_file"));
        }
        if !tensor.is_contiguous() {
            return Err(Error::invalid_argument(format!(
                "You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you \
                 are trying to save tensors which are reference of each other in which case it's recommended to save \
                 only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to \
                 pack it before saving."
            ))
            .in_operation("save_file"));
        }
        by_storage.entry(tensor.storage_id()).or_default().push((name, tensor));
    }
    let mut failing = Vec::new();
    for group in by_storage.values_mut() {
        // Parts of one storage that do not touch are tensors of their own.
        let first = |tensor: &Tensor| tensor.storage_offset() * tensor.element_size();
        group.retain(|(_, tensor)| tensor.numel() > 0);
        group.sort_by_key(|(_, tensor)| first(tensor));
        let overlap =
            group.windows(2).any(|pair| first(pair[1].1) < first(pair[0].1) + pair[0].1.nbytes());
        if overlap {
            let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
            failing.push(format!("{names:?}"));
        }
    }
    if failing.is_empty() {
        return Ok(());
    }
    failing.sort();
    let failing = failing.join(", ");
    Err(Error::new(
        ErrorKind::Shape,
        format!(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when \
             loading them again: [{failing}]. Clone all but one of them, or save a .pt file, which keeps them shared."
        ),
    )
    .in_operation("save_file"))
}
