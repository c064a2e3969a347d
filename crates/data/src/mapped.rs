//! Files as datasets: a mapped file of records of one size ([`RecordDataset`]). Pages come in as
//! they are touched and go as the system likes, so a file may be larger than memory; a sample is
//! copied into memory of the arena. Tokens, of a file or of memory, are `tokens.rs`.
//!
//! Before each sample the file's length is asked for, and a file that has become shorter is an
//! error of that sample. A file that is cut in the very moment between the question and the copy
//! still ends the process by a signal: replace files of running programs by renaming, which leaves
//! the mapped one whole (Note [A mapped file that shrinks] of `plimsoll-memory`).

use std::fs::File;
use std::path::{Path, PathBuf};

use plimsoll_memory::{MappedFile, Site, with_site};
use plimsoll_tensor::{DType, Device, Error, ErrorKind, Result, Tensor};

use crate::dataset::{Dataset, out_of_range};

/// A mapped file, with the path by which errors name it.
#[derive(Debug)]
pub(crate) struct SampleFile {
    pub(crate) path: PathBuf,
    mapped: MappedFile,
}

impl SampleFile {
    pub(crate) fn open(path: &Path) -> Result<SampleFile> {
        let mapped = File::open(path).and_then(MappedFile::read_only).map_err(|cause| {
            let why = format!("cannot map the file `{}`", path.display());
            Error::new(ErrorKind::Io, why).because(cause)
        })?;
        Ok(SampleFile { path: path.to_path_buf(), mapped })
    }

    /// How many bytes it had when it was opened.
    pub(crate) fn len(&self) -> usize {
        self.mapped.bytes().len()
    }

    /// Some of the bytes, if the file still has them.
    pub(crate) fn bytes(&self, from: usize, count: usize) -> Result<&[u8]> {
        let now = self.mapped.file_len().map_err(Error::from)?;
        match self.mapped.bytes().get(from..from + count) {
            Some(bytes) if now >= self.len() as u64 => Ok(bytes),
            _ => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "the file `{}` had {} bytes when it was opened and has {now} now; open the dataset again",
                    self.path.display(),
                    self.len()
                ),
            )),
        }
    }
}

plimsoll_tensor::options! {
    /// How a file of records is read.
    RecordOptions {
        /// Bytes before the first record.
        header_bytes: usize = 0,
        /// Where the tensors are made.
        device: Device = Device::cpu(),
    }
}

/// The records of a file, each a tensor of the same shape and dtype, one after the other in the
/// machine's byte order.
///
/// ```
/// use plimsoll_data::{Dataset, RecordDataset};
/// use plimsoll_tensor::DType;
///
/// let path = std::env::temp_dir().join(format!("plimsoll-records-{}", std::process::id()));
/// let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// std::fs::write(&path, bytes)?;
/// let records = RecordDataset::open(&path, &[2], DType::F32)?;
/// assert_eq!((records.len(), records.get(1)?.to_vec::<f32>()?), (2, vec![3.0, 4.0]));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct RecordDataset {
    file: SampleFile,
    shape: Vec<i64>,
    dtype: DType,
    record_bytes: usize,
    len: usize,
    options: RecordOptions,
    site: Site,
}

impl RecordDataset {
    /// The records of the file.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>, shape: &[i64], dtype: DType) -> Result<RecordDataset> {
        RecordDataset::open_with(path, shape, dtype, RecordOptions::new())
    }

    /// As [`RecordDataset::open`], of a file with a header, or for another device.
    #[track_caller]
    pub fn open_with(
        path: impl AsRef<Path>,
        shape: &[i64],
        dtype: DType,
        options: RecordOptions,
    ) -> Result<RecordDataset> {
        let site = Site::caller();
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation("RecordDataset"));
        let elements = shape.iter().try_fold(1usize, |all, &size| {
            usize::try_from(size).ok().and_then(|size| all.checked_mul(size))
        });
        let Some(record_bytes) = elements
            .and_then(|elements| elements.checked_mul(dtype.size_bytes()))
            .filter(|&bytes| bytes > 0)
        else {
            return refused(format!("records of shape {shape:?} have no size"));
        };
        if dtype == DType::Bool {
            let why = "any byte of a file may be anything but 0 or 1; read uint8 and compare";
            return refused(format!("records of bool cannot be mapped: {why}"));
        }
        let file = SampleFile::open(path.as_ref())?;
        let Some(bytes) = file.len().checked_sub(options.header_bytes) else {
            return refused(format!(
                "the file `{}` has {} bytes, less than the header's {}",
                file.path.display(),
                file.len(),
                options.header_bytes
            ));
        };
        if !bytes.is_multiple_of(record_bytes) {
            return refused(format!(
                "the file `{}` has {bytes} bytes of records, which is no multiple of the {record_bytes} bytes of \
                 {shape:?} {dtype}: it was cut short, or has another shape, dtype or header",
                file.path.display(),
            ));
        }
        let len = bytes / record_bytes;
        Ok(RecordDataset { file, shape: shape.to_vec(), dtype, record_bytes, len, options, site })
    }
}

impl Dataset for RecordDataset {
    type Sample = Tensor;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        let from = self.options.header_bytes + index * self.record_bytes;
        let bytes = self.file.bytes(from, self.record_bytes)?;
        with_site(self.site, || {
            let raw = Tensor::from_slice(bytes, &[bytes.len() as i64], self.options.device)?;
            raw.mark_input().view(self.dtype)?.view(&self.shape)
        })
    }
}
