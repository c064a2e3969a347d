//! Tokens as a dataset: windows over a mapped file or over memory, for models that foretell the
//! next token. A window is copied into memory of the arena when it is asked for. Which windows make
//! a batch is for samplers to say; files of records are `mapped.rs`.

use std::path::Path;

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{Device, Error, Result, Tensor};

use crate::dataset::{Dataset, out_of_range};
use crate::mapped::SampleFile;

/// How a token is written, in the machine's byte order.
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
    /// Bytes of a token.
    ///
    /// ```
    /// assert_eq!(plimsoll_data::TokenWidth::U16.bytes(), 2);
    /// ```
    pub const fn bytes(self) -> usize {
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
    /// How tokens are cut into windows.
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

/// Where tokens lie.
#[derive(Debug)]
enum Held {
    File(SampleFile),
    Memory(Vec<u8>),
}

impl Held {
    fn len(&self) -> usize {
        match self {
            Held::File(file) => file.len(),
            Held::Memory(bytes) => bytes.len(),
        }
    }

    /// Some of the bytes, which were there when it was opened.
    fn bytes(&self, from: usize, count: usize) -> Result<&[u8]> {
        match self {
            Held::File(file) => file.bytes(from, count),
            Held::Memory(bytes) => Ok(&bytes[from..from + count]),
        }
    }

    /// What it is, for an error.
    fn name(&self) -> String {
        match self {
            Held::File(file) => format!("the file `{}`", file.path.display()),
            Held::Memory(_) => "the memory".to_string(),
        }
    }
}

/// Windows over tokens: each sample is `context` tokens and, as its target, the same window one
/// token on, both int64.
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
    held: Held,
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
        let held = Held::File(SampleFile::open(path.as_ref())?);
        TokenDataset::over(held, context, options, site)
    }

    /// Windows of `context` tokens that lie in memory one after the other, as the options say that
    /// they are written.
    ///
    /// ```
    /// use plimsoll_data::{Dataset, TokenDataset, TokenOptions};
    ///
    /// let every = TokenOptions::new().stride(1usize);
    /// let text = TokenDataset::in_memory(b"abcdefg".to_vec(), 3, every)?;
    /// assert_eq!(text.len(), 4);
    /// assert_eq!(text.get(3)?.1.to_vec::<i64>()?, [101, 102, 103]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn in_memory(
        tokens: Vec<u8>,
        context: usize,
        options: TokenOptions,
    ) -> Result<TokenDataset> {
        TokenDataset::over(Held::Memory(tokens), context, options, Site::caller())
    }

    fn over(held: Held, context: usize, options: TokenOptions, site: Site) -> Result<TokenDataset> {
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation("TokenDataset"));
        let stride = options.stride.unwrap_or(context);
        if context == 0 || stride == 0 {
            return refused(format!(
                "the context ({context}) and the stride ({stride}) must be at least 1"
            ));
        }
        let (bytes, width) = (held.len(), options.width.bytes());
        if !bytes.is_multiple_of(width) {
            return refused(format!(
                "{} has {bytes} bytes, no multiple of a token's {width}",
                held.name()
            ));
        }
        let tokens = bytes / width;
        let Some(room) = tokens.checked_sub(context.saturating_add(1)) else {
            return refused(format!(
                "a context of {context} needs {} tokens, and {} has {tokens}; take a shorter context",
                context.saturating_add(1),
                held.name()
            ));
        };
        Ok(TokenDataset { held, context, stride, len: room / stride + 1, options, site })
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
        let bytes = self.held.bytes(from, (self.context + 1) * width)?;
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
