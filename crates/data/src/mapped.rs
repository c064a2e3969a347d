//! Files as datasets: a mapped file of records of one size ([`RecordDataset`]), or of tokens read
//! in windows ([`TokenDataset`]). Pages come in as they are touched and go as the system likes, so
//! a file may be larger than memory; a sample is copied into memory of the arena.
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
struct SampleFile {
    path: PathBuf,
    mapped: MappedFile,
}

impl SampleFile {
    fn open(path: &Path) -> Result<SampleFile> {
        let mapped = File::open(path).and_then(MappedFile::read_only).map_err(|cause| {
            let why = format!("cannot map the file `{}`", path.display());
            Error::new(ErrorKind::Io, why).because(cause)
        })?;
        Ok(SampleFile { path: path.to_path_buf(), mapped })
    }

    /// How many bytes it had when it was opened.
    fn len(&self) -> usize {
        self.mapped.bytes().len()
    }

    /// Some of the bytes, if the file still has them.
    fn bytes(&self, from: usize, count: usize) -> Result<&[u8]> {
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

/// How a token is written in a file, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenWidth {
    /// A byte: texts as they are.
    U8,
    /// Two bytes, without a sign.
    U16,
    /// Four bytes, without a sign.
    U32,
    /// Eight bytes.
    I64,
}

impl TokenWidth {
    const fn bytes(self) -> usize {
        match self {
            TokenWidth::U8 => 1,
            TokenWidth::U16 => 2,
            TokenWidth::U32 => 4,
            TokenWidth::I64 => 8,
        }
    }

    fn read(self, bytes: &[u8]) -> Vec<i64> {
        match self {
            TokenWidth::U8 => bytes.iter().map(|&byte| i64::from(byte)).collect(),
            TokenWidth::U16 => {
                let tokens = bytes.as_chunks().0.iter();
                tokens.map(|&token| i64::from(u16::from_ne_bytes(token))).collect()
            }
            TokenWidth::U32 => {
                let tokens = bytes.as_chunks().0.iter();
                tokens.map(|&token| i64::from(u32::from_ne_bytes(token))).collect()
            }
            TokenWidth::I64 => {
                bytes.as_chunks().0.iter().map(|&token| i64::from_ne_bytes(token)).collect()
            }
        }
    }
}

plimsoll_tensor::options! {
    /// How a file of tokens is cut into windows.
    TokenOptions {
        /// Tokens from the start of one window to the start of the next; the context if nothing is
        /// said, so that windows do not share targets.
        stride: Option<usize> = None,
        /// How tokens are written.
        width: TokenWidth = TokenWidth::U8,
        /// Where the tensors are made.
        device: Device = Device::cpu(),
    }
}

/// Windows over a file of tokens, for models that foretell the next one: each sample is `context`
/// tokens and, as its target, the same window one token on, both int64.
///
/// ```
/// use plimsoll_data::{Dataset, TokenDataset};
///
/// let path = std::env::temp_dir().join(format!("plimsoll-tokens-{}", std::process::id()));
/// std::fs::write(&path, "abcdefg")?;
/// let text = TokenDataset::open(&path, 3)?;
/// let (x, y) = text.get(1)?;
/// assert_eq!(text.len(), 2);
/// assert_eq!(x.to_vec::<i64>()?, [100, 101, 102]);
/// assert_eq!(y.to_vec::<i64>()?, [101, 102, 103]);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct TokenDataset {
    file: SampleFile,
    context: usize,
    stride: usize,
    len: usize,
    options: TokenOptions,
    site: Site,
}

impl TokenDataset {
    /// Windows of `context` bytes of a text.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>, context: usize) -> Result<TokenDataset> {
        TokenDataset::open_with(path, context, TokenOptions::new())
    }

    /// As [`TokenDataset::open`], of wider tokens, or with windows that overlap.
    #[track_caller]
    pub fn open_with(
        path: impl AsRef<Path>,
        context: usize,
        options: TokenOptions,
    ) -> Result<TokenDataset> {
        let site = Site::caller();
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation("TokenDataset"));
        let stride = options.stride.unwrap_or(context);
        if context == 0 || stride == 0 {
            return refused(format!(
                "the context ({context}) and the stride ({stride}) must be at least 1"
            ));
        }
        let file = SampleFile::open(path.as_ref())?;
        let (bytes, width) = (file.len(), options.width.bytes());
        if !bytes.is_multiple_of(width) {
            return refused(format!(
                "the file `{}` has {bytes} bytes, no multiple of a token's {width}",
                file.path.display()
            ));
        }
        let tokens = bytes / width;
        let Some(room) = tokens.checked_sub(context.saturating_add(1)) else {
            return refused(format!(
                "a context of {context} needs {} tokens, and the file `{}` has {tokens}; take a shorter context",
                context.saturating_add(1),
                file.path.display()
            ));
        };
        Ok(TokenDataset { file, context, stride, len: room / stride + 1, options, site })
    }
}

impl Dataset for TokenDataset {
    type Sample = (Tensor, Tensor);

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        let width = self.options.width.bytes();
        let from = index * self.stride * width;
        let bytes = self.file.bytes(from, (self.context + 1) * width)?;
        let tokens = self.options.width.read(bytes);
        with_site(self.site, || {
            // One memory for both: the target is the same window one token on.
            let both = Tensor::from_slice(&tokens, &[tokens.len() as i64], self.options.device)?;
            let both = both.mark_input();
            let length = self.context as i64;
            Ok((both.narrow(0, 0, length)?, both.narrow(0, 1, length)?))
        })
    }
}
