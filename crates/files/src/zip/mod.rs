//! Zip archives as PyTorch writes them: entries that are stored, not compressed, each at a multiple
//! of 64 bytes, so that a mapped archive is its entries. Reading gives ranges of the file, writing
//! goes forward only. See docs/decisions.md for why this is not a library's.

mod read;
mod write;

pub(crate) use read::{Archive, Entry};
pub(crate) use write::ArchiveWriter;

/// Where the bytes of an entry begin: at a multiple of this.
const ALIGNMENT: u64 = 64;

/// The largest number that the plain fields can hold; this one says to look at the wide ones.
const WIDE: u64 = u32::MAX as u64;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const END: u32 = 0x0605_4b50;
const WIDE_END: u32 = 0x0606_4b50;
const WIDE_LOCATOR: u32 = 0x0706_4b50;

/// The extra field with sizes and offsets of 64 bits.
const WIDE_FIELD: u16 = 1;
/// The extra field that pads, as PyTorch calls it.
const PADDING_FIELD: u16 = u16::from_le_bytes(*b"FB");
