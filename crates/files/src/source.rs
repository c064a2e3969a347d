//! The bytes of a file that is read, and how they become tensors: the only `unsafe` code of this
//! crate. A file is mapped, so that its bytes are the source of the one copy to where a tensor is
//! to live; or a tensor lies on the mapped file itself.
//!
//! The mapping is private: writes to a tensor that lies on it stay in this process, and the file
//! never changes. Somebody who cuts the file short while it is in use ends this process with
//! SIGBUS (Note [A mapped file that shrinks] of `plimsoll-memory`); saves of this crate never do,
//! because they put a new file in place.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::{DType, Device, Result};
use plimsoll_memory::MappedFile;
use plimsoll_tensor::Tensor;

use crate::fault;

/// A file's bytes, mapped or in memory. Who reads it takes it: tensors may lie on it from then on.
///
/// ```
/// use plimsoll_files::Source;
/// assert_eq!(Source::from(vec![1, 2, 3]).bytes(), [1, 2, 3]);
/// ```
#[derive(Debug)]
pub struct Source(Arc<Held>);

#[derive(Debug)]
enum Held {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl From<Vec<u8>> for Source {
    fn from(bytes: Vec<u8>) -> Source {
        Source(Arc::new(Held::Owned(bytes)))
    }
}

impl Source {
    /// Maps a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Source> {
        let path = path.as_ref();
        let failed = |cause| fault::io(path, "read", cause);
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        // What is no plain file (a pipe) has no length to map, nor has an empty one.
        if !about.is_file() || about.len() == 0 {
            return std::fs::read(path).map(Source::from).map_err(failed);
        }
        let mapped = MappedFile::private(file).map_err(failed)?;
        Ok(Source(Arc::new(Held::Mapped(mapped))))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &*self.0 {
            Held::Mapped(mapped) => mapped.bytes(),
            Held::Owned(bytes) => bytes,
        }
    }

    /// The bytes of `range` as a flat tensor of its own on `device`: one copy, from the file's
    /// bytes to there. With `on_file`, a tensor in host memory lies on the mapped file instead, if
    /// its elements can lie there. `None` if the range is not within the file.
    pub(crate) fn tensor(
        &self,
        range: Range<usize>,
        dtype: DType,
        device: Device,
        on_file: bool,
    ) -> Option<Result<Tensor>> {
        let bytes = self.bytes().get(range)?;
        debug_assert!(bytes.len().is_multiple_of(dtype.size_bytes()));
        if bytes.is_empty() {
            return Some(Tensor::empty(&[0], (dtype, device)));
        }
        // Kernels rely on bools being 0 or 1, and a file may hold anything.
        let odd = dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1);
        let aligned = bytes.as_ptr().addr().is_multiple_of(dtype.size_bytes());
        let host = device.is_cpu() && !device.is_dry();
        let mapped = matches!(*self.0, Held::Mapped(_));
        Some(if on_file && mapped && host && aligned && !odd {
            self.lie_on(bytes, dtype, device)
        } else {
            self.copied(bytes, dtype, device, odd)
        })
    }

    fn copied(&self, bytes: &[u8], dtype: DType, device: Device, odd: bool) -> Result<Tensor> {
        let raw = self.lie_on(bytes, DType::U8, Device::cpu())?;
        let there = if device == Device::cpu() { raw.clone_tensor()? } else { raw.to(device)? };
        match odd {
            true => Ok(there.ne(0)?.detach()),
            false => Ok(there.view(dtype)?.detach()),
        }
    }

    /// A tensor over bytes of this source, which it holds.
    fn lie_on(&self, bytes: &[u8], dtype: DType, device: Device) -> Result<Tensor> {
        let (address, numel) =
            (bytes.as_ptr().expose_provenance(), bytes.len() / dtype.size_bytes());
        let owner = Source(self.0.clone());
        // SAFETY: `bytes` is a part of this source, which the tensor holds and which never moves.
        // Tensors that are handed out lie on a private mapping that may be written; the others are
        // read by one copy and dropped. Slices of these bytes exist only until a reader, which
        // takes the source, hands its tensors out. Bools were looked at by the caller.
        unsafe { Tensor::from_foreign_on(device, owner, address, &[numel as i64], &[1], dtype) }
    }
}
