//! What PyTorch computed for the same calls: files in `golden/data`, one a family, made by
//! `golden/make_golden.py`. They hold results only; the inputs are a function of an instance's
//! name, and a checksum says whether they still are the ones that PyTorch saw.
//!
//! A file, all numbers little-endian:
//! ```text
//! "PLGOLD1\n"   u32 length + text that says where it comes from
//! u32 number of entries, then each entry:
//!   u64 key of the instance   u64 checksum of its inputs
//!   u8 number of results, or 255: PyTorch refused
//!   each result: u8 dtype (its place in DType::ALL)   u8 rank
//!                u32 sizes..   u32 strides..   u32 offset
//!                its elements in row-major order
//! ```

use std::collections::HashMap;
use std::path::PathBuf;

use plimsoll_core::DType;

use crate::cases::{Instance, fingerprint};
use crate::layouts::from_bytes;
use crate::oracle::{Array, Number};

/// One result of PyTorch's.
#[derive(Clone, Debug)]
pub struct Result {
    /// Values, dtype and shape.
    pub array: Array,
    /// Strides in elements.
    pub strides: Vec<usize>,
    /// The first element's place in its storage.
    pub offset: usize,
}

/// What PyTorch did with an instance.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It raised an error.
    Refused,
    /// It gave these results.
    Results(Vec<Result>),
}

/// The golden results of a family.
#[derive(Debug)]
pub struct Golden {
    /// The version that made them, and when the generator last changed.
    pub made_by: String,
    entries: HashMap<u64, (u64, Answer)>,
}

impl Golden {
    /// Reads the file of `family`. Tests cannot run without it, so a missing or broken file is a
    /// panic that says how to make it.
    pub fn read(family: &str) -> Golden {
        let path = path(family);
        let remake = "make it with crates/testkit/golden/make_golden.py";
        let bytes = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; {remake}", path.display()));
        Golden::parse(&bytes)
            .unwrap_or_else(|| panic!("{} is not a golden file; {remake}", path.display()))
    }

    /// What PyTorch did with `instance`; `None` if it was never asked.
    pub fn answer(&self, instance: &Instance<'_>) -> Option<&Answer> {
        let (checksum, answer) = self.entries.get(&instance.key())?;
        (*checksum == inputs_checksum(instance)).then_some(answer)
    }

    /// How many instances PyTorch was asked.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn parse(bytes: &[u8]) -> Option<Golden> {
        let mut reader = Reader(bytes);
        (reader.take(8)? == b"PLGOLD1\n").then_some(())?;
        let length = reader.u32()?;
        let made_by = String::from_utf8(reader.take(length)?.to_vec()).ok()?;
        let count = reader.u32()?;
        let mut entries = HashMap::with_capacity(count);
        for _ in 0..count {
            let (key, checksum) = (reader.u64()?, reader.u64()?);
            let answer = match reader.u8()? {
                255 => Answer::Refused,
                results => {
                    Answer::Results((0..results).map(|_| reader.result()).collect::<Option<_>>()?)
                }
            };
            entries.insert(key, (checksum, answer));
        }
        reader.0.is_empty().then_some(Golden { made_by, entries })
    }
}

/// A number that changes with any byte of an instance's inputs.
pub fn inputs_checksum(instance: &Instance<'_>) -> u64 {
    let bytes: Vec<u8> = instance.inputs().iter().flat_map(|placed| placed.bytes()).collect();
    fingerprint(&bytes)
}

/// Where the file of `family` lies.
pub fn path(family: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/data/{family}.golden"))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn u8(&mut self) -> Option<usize> {
        Some(usize::from(self.take(1)?[0]))
    }

    fn u32(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn result(&mut self) -> Option<Result> {
        let dtype = *DType::ALL.get(self.u8()?)?;
        let rank = self.u8()?;
        let shape: Vec<usize> = (0..rank).map(|_| self.u32()).collect::<Option<_>>()?;
        let strides: Vec<usize> = (0..rank).map(|_| self.u32()).collect::<Option<_>>()?;
        let offset = self.u32()?;
        let count: usize = shape.iter().product();
        let values: Vec<Number> = self
            .take(count * dtype.size_bytes())?
            .chunks_exact(dtype.size_bytes())
            .map(|bytes| from_bytes(dtype, bytes))
            .collect();
        Some(Result { array: Array::new(dtype, &shape, values), strides, offset })
    }
}
