//! Finds the entries of an archive as ranges of its bytes. What an archive says of itself is
//! checked against the bytes that are there: entries lie within the file and not on each other, so
//! that all of them together are no larger than the file.

use std::ops::Range;

use plimsoll_core::Result;

use super::{CENTRAL, END, LOCAL, WIDE, WIDE_END, WIDE_FIELD, WIDE_LOCATOR};
use crate::fault::bad;

/// The entries of an archive.
pub(crate) struct Archive {
    entries: Vec<Entry>,
}

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Where its bytes are in the file.
    pub(crate) range: Range<usize>,
}

/// Bytes of the end's record, and of the longest comment after it.
const END_BYTES: usize = 22;
const COMMENT_BYTES: usize = u16::MAX as usize;

impl Archive {
    pub(crate) fn read(file: &[u8]) -> Result<Archive> {
        let (count, list) = find_list(file)?;
        let mut rest = file.get(list.clone()).unwrap_or_default();
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry;
            (entry, rest) = central_header(file, rest)?;
            entries.push(entry);
        }
        check_overlap(&entries, list)?;
        Ok(Archive { entries })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// How many entries there are, and where their list is.
fn find_list(file: &[u8]) -> Result<(u64, Range<usize>)> {
    let cut = "the zip archive has no end: the file was cut short, or is no archive";
    let last = file.len().checked_sub(END_BYTES).ok_or_else(|| bad(cut))?;
    let first = last.saturating_sub(COMMENT_BYTES);
    let end = (first..=last).rev().find(|at| u32_at(file, *at) == Some(END));
    let end = end.ok_or_else(|| bad(cut))?;
    let field = |at: usize| u32_at(file, end + at).unwrap_or(0);
    let mut count = u64::from(u16_at(file, end + 10).unwrap_or(0));
    let (mut bytes, mut start) = (u64::from(field(12)), u64::from(field(16)));
    let locator = end.checked_sub(20).filter(|at| u32_at(file, *at) == Some(WIDE_LOCATOR));
    if let Some(locator) = locator {
        let record = u64_at(file, locator + 8).and_then(|at| usize::try_from(at).ok());
        let record = record.filter(|at| u32_at(file, *at) == Some(WIDE_END));
        let record =
            record.ok_or_else(|| bad("the zip archive's 64-bit end is not where it says"))?;
        let wide = |at: usize| u64_at(file, record.saturating_add(at));
        (count, bytes, start) = match (wide(32), wide(40), wide(48)) {
            (Some(count), Some(bytes), Some(start)) => (count, bytes, start),
            _ => return Err(bad(cut)),
        };
    }
    let list = usize::try_from(start).ok().zip(usize::try_from(bytes).ok());
    let list = list.and_then(|(start, bytes)| Some(start..start.checked_add(bytes)?));
    match list {
        Some(list) if list.end <= end => Ok((count, list)),
        _ => Err(bad("the zip archive's list of entries is not within the file")),
    }
}

/// The entry that the list's next record names, and the rest of the list.
fn central_header<'a>(file: &[u8], record: &'a [u8]) -> Result<(Entry, &'a [u8])> {
    let cut = || bad("the zip archive's list of entries is cut short");
    if u32_at(record, 0) != Some(CENTRAL) {
        return Err(cut());
    }
    let short = |at: usize| u16_at(record, at).ok_or_else(cut);
    let plain = |at: usize| u32_at(record, at).map(u64::from).ok_or_else(cut);
    let name_end = 46 + usize::from(short(28)?);
    let extra_end = name_end + usize::from(short(30)?);
    let next = extra_end + usize::from(short(32)?);
    let name = record.get(46..name_end).ok_or_else(cut)?;
    let name = String::from_utf8_lossy(name).into_owned();
    let extra = record.get(name_end..extra_end).ok_or_else(cut)?;
    let mut wide = wide_numbers(extra);
    // Each number that does not fit its plain field is the next one of the wide ones.
    let mut number = |at: usize| match plain(at)? {
        WIDE => wide.next().ok_or_else(|| bad(format!("entry `{name}` has no 64-bit size"))),
        number => Ok(number),
    };
    let (bytes, stored, start) = (number(24)?, number(20)?, number(42)?);
    if short(8)? & 1 != 0 {
        return Err(bad(format!("entry `{name}` is encrypted")));
    }
    match short(10)? {
        0 if bytes == stored => {}
        0 => return Err(bad(format!("entry `{name}` lies about its size"))),
        _ => {
            return Err(bad(format!(
                "entry `{name}` is compressed, and PyTorch's archives are not: unpack the file and pack it \
                 again without compression (zip -0)"
            )));
        }
    }
    let range = data_range(file, start, bytes).ok_or_else(|| {
        bad(format!(
            "entry `{name}` of {bytes} bytes is not within the file's {} bytes",
            file.len()
        ))
    })?;
    Ok((Entry { name, range }, record.get(next..).ok_or_else(cut)?))
}

/// Where the bytes behind the header at `start` are, if all of that is there.
fn data_range(file: &[u8], start: u64, bytes: u64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    let header = file.get(start..)?;
    if u32_at(header, 0)? != LOCAL {
        return None;
    }
    let lengths = usize::from(u16_at(header, 26)?) + usize::from(u16_at(header, 28)?);
    let first = start + 30 + lengths;
    let end = first.checked_add(usize::try_from(bytes).ok()?)?;
    (end <= file.len()).then_some(first..end)
}

/// The numbers of the wide field among the extra ones.
fn wide_numbers(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut field: &[u8] = &[];
    while let (Some(id), Some(bytes)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let Some(content) = extra.get(4..4 + usize::from(bytes)) else { break };
        if id == WIDE_FIELD {
            field = content;
        }
        extra = &extra[4 + usize::from(bytes)..];
    }
    field.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number))
}

/// Entries that share bytes could be many times the file in memory.
fn check_overlap(entries: &[Entry], list: Range<usize>) -> Result<()> {
    let mut by_start: Vec<&Entry> = entries.iter().collect();
    by_start.sort_by_key(|entry| (entry.range.start, entry.range.end));
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(bad(format!("entry `{}` is there twice", twice[0])));
    }
    for pair in by_start.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            return Err(bad(format!(
                "entries `{}` and `{}` lie on the same bytes",
                pair[0].name, pair[1].name
            )));
        }
    }
    match by_start.last() {
        Some(last) if last.range.end > list.start => {
            Err(bad(format!("entry `{}` reaches into the list of entries", last.name)))
        }
        _ => Ok(()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::ArchiveWriter;
    use super::*;

    fn archive(wide_from: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = ArchiveWriter::new(&mut out).wide_from(wide_from);
        for (name, bytes) in [("a/data.pkl", 5), ("a/data/0", 0), ("a/data/1", 300)] {
            writer.entry(name, bytes, |out| Ok(out.write_all(&vec![7; bytes as usize])?)).unwrap();
        }
        writer.finish().unwrap();
        out
    }

    #[test]
    fn entries_are_aligned_ranges_in_plain_and_wide_archives() {
        for wide_from in [WIDE, 100, 0] {
            let file = archive(wide_from);
            let read = Archive::read(&file).unwrap();
            let found: Vec<_> =
                read.entries().iter().map(|e| (e.name.as_str(), e.range.len())).collect();
            assert_eq!(found, [("a/data.pkl", 5), ("a/data/0", 0), ("a/data/1", 300)]);
            for entry in read.entries() {
                assert!(entry.range.start.is_multiple_of(64));
                assert!(file[entry.range.clone()].iter().all(|byte| *byte == 7));
            }
        }
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_an_archive_or_an_error() {
        for wide_from in [WIDE, 0] {
            let file = archive(wide_from);
            for len in 0..file.len() {
                assert!(Archive::read(&file[..len]).is_err(), "{len} of {}", file.len());
            }
            for at in 0..file.len() {
                for byte in [0, 1, 0x7f, 0xff, file[at] ^ 1, file[at].wrapping_add(64)] {
                    let mut changed = file.clone();
                    changed[at] = byte;
                    if let Ok(read) = Archive::read(&changed) {
                        let total: usize = read.entries().iter().map(|e| e.range.len()).sum();
                        assert!(total <= file.len());
                    }
                }
            }
        }
    }

    #[test]
    fn entries_on_the_same_bytes_are_refused() {
        let file = archive(WIDE);
        // The third entry's place in the list becomes the first one's.
        let list = file.windows(4).rposition(|bytes| bytes == CENTRAL.to_le_bytes()).unwrap();
        let mut changed = file.clone();
        changed[list + 42..list + 46].copy_from_slice(&0u32.to_le_bytes());
        let error = Archive::read(&changed).err().unwrap().to_string();
        assert!(error.contains("lie on the same bytes"), "{error}");
    }
}
