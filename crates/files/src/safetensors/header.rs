//! The header of a safetensors file: eight bytes of length, then JSON that says where each tensor's
//! bytes are. Read with every claim checked and the tensor named that it is wrong of.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use plimsoll_core::{DType, Error, Result};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::fault::bad;

/// The key of what is no tensor.
pub(super) const METADATA: &str = "__metadata__";
/// The longest header that the format allows.
const LONGEST_BYTES: usize = 100_000_000;

/// What a file says of its tensors.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, String>,
    /// In the order of their bytes.
    pub(super) tensors: Vec<(String, Info)>,
}

/// What is said of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Info {
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    /// Its bytes, counted from the header's end.
    pub(super) data_offsets: (usize, usize),
}

/// The format's names of dtypes, the widest first: the order in which files have them.
pub(super) const DTYPES: [(&str, DType); 10] = [
    ("I64", DType::I64),
    ("F64", DType::F64),
    ("F32", DType::F32),
    ("I32", DType::I32),
    ("BF16", DType::BF16),
    ("F16", DType::F16),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U8", DType::U8),
    ("BOOL", DType::Bool),
];

impl Info {
    /// The dtype and the bytes of the tensor in the file, whose header ends at `start`.
    pub(super) fn place(&self, name: &str, start: usize) -> Result<(DType, Range<usize>)> {
        let known = DTYPES.iter().find(|(word, _)| *word == self.dtype);
        let (_, dtype) = known.ok_or_else(|| {
            let word: String = self.dtype.chars().take(20).collect();
            Error::dtype("load_file", format!("tensor `{name}` is {word}, which Plimsoll has not"))
        })?;
        let numel = self.shape.iter().try_fold(1usize, |numel, size| numel.checked_mul(*size));
        let bytes = numel.and_then(|numel| numel.checked_mul(dtype.size_bytes()));
        let (first, end) = self.data_offsets;
        if bytes.is_none() || end.checked_sub(first) != bytes {
            return Err(bad(format!(
                "tensor `{name}` of shape {:?} and {dtype} does not have the bytes {first} to {end}",
                self.shape
            )));
        }
        Ok((*dtype, start + first..start + end))
    }
}

/// Reads the header. The answer is the header and where it ends.
pub(super) fn read(file: &[u8]) -> Result<(Header, usize)> {
    let cut =
        || bad("the file is shorter than its header: it was cut short, or is no safetensors file");
    let (len, rest) = file.split_first_chunk::<8>().ok_or_else(cut)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX);
    if len > LONGEST_BYTES {
        return Err(bad(format!("the header of {len} bytes is longer than the format allows")));
    }
    let text = rest.get(..len).ok_or_else(cut)?;
    let header: Header = serde_json::from_slice(text)
        .map_err(|cause| bad(format!("the header is not as safetensors has it: {cause}")))?;
    check_cover(&header, rest.len() - len)?;
    Ok((header, 8 + len))
}

/// Tensors follow each other from the first byte to the last: none lies on another, and nothing is
/// hidden between them.
fn check_cover(header: &Header, bytes: usize) -> Result<()> {
    let mut next = 0;
    for (name, info) in &header.tensors {
        let (first, end) = info.data_offsets;
        if first != next || end < first || end > bytes {
            return Err(bad(format!(
                "tensor `{name}` has the bytes {first} to {end}, where {next} should come next, of {bytes}: the file \
                 was cut short, or is damaged"
            )));
        }
        next = end;
    }
    match bytes - next {
        0 => Ok(()),
        more => Err(bad(format!("{more} bytes follow the last tensor"))),
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    match name == METADATA {
                        true => header.metadata = map.next_value()?,
                        false => header.tensors.push((name, map.next_value()?)),
                    }
                }
                header.tensors.sort_by_key(|(_, info)| info.data_offsets);
                Ok(header)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry(METADATA, &self.metadata)?;
        }
        for (name, info) in &self.tensors {
            map.serialize_entry(name, info)?;
        }
        map.end()
    }
}

/// The header as bytes, with its length, padded so that tensors begin at a multiple of eight.
pub(super) fn written(header: &Header) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(header)
        .map_err(|cause| bad(format!("the header cannot be written: {cause}")))?;
    text.resize(text.len().next_multiple_of(8), b' ');
    if text.len() > LONGEST_BYTES {
        let len = text.len();
        return Err(bad(format!("the header of {len} bytes is longer than the format allows")));
    }
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, bytes: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + bytes, 0);
        file
    }

    #[test]
    fn lies_are_errors_that_name_the_tensor() {
        let huge = usize::MAX;
        for (header, bytes, says) in [
            (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#.to_string(), 7, "`a`"),
            (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#.to_string(), 9, "1 bytes"),
            (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#.to_string(), 12, "`a`"),
            (r#"{"a":{"dtype":"F32","shape":[],"data_offsets":[8,4]}}"#.to_string(), 8, "`a`"),
            (
                format!(r#"{{"a":{{"dtype":"U8","shape":[{huge}],"data_offsets":[0,{huge}]}}}}"#),
                8,
                "`a`",
            ),
            (r#"{"a":1}"#.to_string(), 0, "not as safetensors has it"),
            (r#"{"a":{},"a":{}}"#.to_string(), 0, "not as safetensors has it"),
            ("[".repeat(100_000), 0, "not as safetensors has it"),
        ] {
            let error = read(&file(&header, bytes)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let mut long = file("{}", 0);
        long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(read(&long).unwrap_err().to_string().contains("longer than"));
        assert!(read(b"short").unwrap_err().to_string().contains("shorter"));
    }

    #[test]
    fn shapes_that_overflow_are_errors() {
        let info = |shape: Vec<usize>| Info { dtype: "F32".into(), shape, data_offsets: (0, 0) };
        assert!(info(vec![usize::MAX, 2]).place("a", 0).is_err());
        assert!(info(vec![usize::MAX / 2]).place("a", 0).is_err());
        assert_eq!(info(vec![0, 5]).place("a", 16).unwrap(), (DType::F32, 16..16));
    }
}
