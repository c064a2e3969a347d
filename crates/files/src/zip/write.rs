//! Writes an archive, from its start to its end: the checksum of an entry follows its bytes, so
//! that they are read once and the file is never gone back in.

use std::io::Write;

use plimsoll_core::Result;

use super::{
    ALIGNMENT, CENTRAL, DESCRIPTOR, END, LOCAL, PADDING_FIELD, WIDE, WIDE_END, WIDE_FIELD,
    WIDE_LOCATOR,
};

/// Names are UTF-8 (bit 11), the checksum follows the bytes (bit 3).
const FLAGS: u16 = 1 << 11 | 1 << 3;
/// What a reader must know: 4.5, which has 64-bit sizes.
const VERSION: u16 = 45;
/// 1 January 1980, the first date there is: a save of the same values is the same file.
const DATE: u16 = 1 << 5 | 1;

/// An archive in the making.
pub(crate) struct ArchiveWriter<'a> {
    out: &'a mut dyn Write,
    at: u64,
    entries: Vec<Written>,
    /// From which number on the wide fields are used; smaller in tests.
    wide_from: u64,
}

struct Written {
    name: String,
    start: u64,
    bytes: u64,
    checksum: u32,
}

/// Counts and checks what passes.
struct Checked<'a> {
    out: &'a mut dyn Write,
    hash: crc32fast::Hasher,
    bytes: u64,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl<'a> ArchiveWriter<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> ArchiveWriter<'a> {
        ArchiveWriter { out, at: 0, entries: Vec::new(), wide_from: WIDE }
    }

    /// As if an archive of `from` bytes were too large for the plain fields.
    #[cfg(test)]
    pub(crate) fn wide_from(mut self, from: u64) -> ArchiveWriter<'a> {
        self.wide_from = from;
        self
    }

    /// Adds an entry of `bytes` bytes, which `write` writes.
    pub(crate) fn entry(
        &mut self,
        name: &str,
        bytes: u64,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let start = self.at;
        let wide = bytes >= self.wide_from;
        self.local_header(name, bytes, wide)?;
        let mut checked = Checked { out: &mut *self.out, hash: crc32fast::Hasher::new(), bytes: 0 };
        write(&mut checked)?;
        let (written, checksum) = (checked.bytes, checked.hash.finalize());
        debug_assert_eq!(written, bytes, "{name}");
        self.at += written;
        let mut after = Vec::with_capacity(24);
        put32(&mut after, DESCRIPTOR);
        put32(&mut after, checksum);
        for _ in 0..2 {
            match wide {
                true => after.extend(written.to_le_bytes()),
                false => put32(&mut after, written as u32),
            }
        }
        self.put(&after)?;
        self.entries.push(Written { name: name.to_string(), start, bytes: written, checksum });
        Ok(())
    }

    fn local_header(&mut self, name: &str, bytes: u64, wide: bool) -> Result<()> {
        let mut extra = Vec::new();
        if wide {
            put16(&mut extra, WIDE_FIELD);
            put16(&mut extra, 16);
            extra.extend([bytes.to_le_bytes(), bytes.to_le_bytes()].concat());
        }
        // The padding is a field of its own: its name, its length, and as many bytes.
        let before = self.at + 30 + (name.len() + extra.len()) as u64 + 4;
        let padding = before.next_multiple_of(ALIGNMENT) - before;
        put16(&mut extra, PADDING_FIELD);
        put16(&mut extra, padding as u16);
        extra.extend(std::iter::repeat_n(b'Z', padding as usize));
        let mut header = Vec::with_capacity(30 + name.len() + extra.len());
        put32(&mut header, LOCAL);
        self.facts(&mut header, 0, if wide { None } else { Some(bytes) });
        put16(&mut header, name.len() as u16);
        put16(&mut header, extra.len() as u16);
        header.extend(name.as_bytes());
        header.extend(extra);
        self.put(&header)
    }

    /// Version, flags, method, date, checksum and sizes, the same in both headers.
    fn facts(&self, header: &mut Vec<u8>, checksum: u32, bytes: Option<u64>) {
        for field in [VERSION, FLAGS, 0, 0, DATE] {
            put16(header, field);
        }
        put32(header, checksum);
        let bytes = bytes.map_or(u32::MAX, |bytes| bytes as u32);
        put32(header, bytes);
        put32(header, bytes);
    }

    /// The list of entries, and the end.
    pub(crate) fn finish(mut self) -> Result<()> {
        let start = self.at;
        let count = self.entries.len() as u64;
        for entry in std::mem::take(&mut self.entries) {
            self.central_header(&entry)?;
        }
        let bytes = self.at - start;
        let wide = start >= self.wide_from || count >= u64::from(u16::MAX).min(self.wide_from);
        let mut end = Vec::new();
        if wide {
            let record = self.at;
            put32(&mut end, WIDE_END);
            end.extend(44u64.to_le_bytes());
            put16(&mut end, VERSION);
            put16(&mut end, VERSION);
            put32(&mut end, 0);
            put32(&mut end, 0);
            for number in [count, count, bytes, start] {
                end.extend(number.to_le_bytes());
            }
            put32(&mut end, WIDE_LOCATOR);
            put32(&mut end, 0);
            end.extend(record.to_le_bytes());
            put32(&mut end, 1);
        }
        put32(&mut end, END);
        put32(&mut end, 0);
        let count = if wide { u16::MAX } else { count as u16 };
        put16(&mut end, count);
        put16(&mut end, count);
        put32(&mut end, if wide { u32::MAX } else { bytes as u32 });
        put32(&mut end, if wide { u32::MAX } else { start as u32 });
        put16(&mut end, 0);
        self.put(&end)
    }

    fn central_header(&mut self, entry: &Written) -> Result<()> {
        let wide_bytes = entry.bytes >= self.wide_from;
        let wide_start = entry.start >= self.wide_from;
        let mut wide = Vec::new();
        if wide_bytes {
            wide.extend([entry.bytes.to_le_bytes(), entry.bytes.to_le_bytes()].concat());
        }
        if wide_start {
            wide.extend(entry.start.to_le_bytes());
        }
        let mut header = Vec::with_capacity(46 + entry.name.len() + 4 + wide.len());
        put32(&mut header, CENTRAL);
        put16(&mut header, VERSION);
        self.facts(&mut header, entry.checksum, (!wide_bytes).then_some(entry.bytes));
        put16(&mut header, entry.name.len() as u16);
        put16(&mut header, if wide.is_empty() { 0 } else { 4 + wide.len() as u16 });
        // No comment, the first disk, no attributes.
        header.extend([0; 10]);
        put32(&mut header, if wide_start { u32::MAX } else { entry.start as u32 });
        header.extend(entry.name.as_bytes());
        if !wide.is_empty() {
            put16(&mut header, WIDE_FIELD);
            put16(&mut header, wide.len() as u16);
            header.extend(wide);
        }
        self.put(&header)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

fn put16(out: &mut Vec<u8>, number: u16) {
    out.extend(number.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}
