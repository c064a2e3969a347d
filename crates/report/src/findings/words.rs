//! Words that findings share: bytes, counts, lines.

use plimsoll_core::ByteSize;

use super::Case;
use crate::analysis::{SiteId, Sites};
use crate::stacks::Frame;

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    ByteSize(usize::try_from(bytes).unwrap_or(usize::MAX)).to_string()
}

/// `1 allocation`, `3 allocations`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A sum that stops at the largest number: forged files add up to more than 64 bits.
pub(super) fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// Whole percent of a part, to the nearest as in the tables.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    ((u128::from(part) * 100 + whole / 2) / whole) as u64
}

impl Case<'_> {
    /// `train.py:17`, with enough of the path to find it.
    pub(super) fn line(&self, site: SiteId) -> String {
        if site == Sites::NOWHERE {
            return "a thread without Python frames (backward, most likely)".to_string();
        }
        self.place(self.lines.sites.frame(site))
    }

    /// The same of a frame.
    pub(super) fn place(&self, frame: Frame) -> String {
        let file = self.snapshot.strings.get(frame.file);
        format!("{}:{}", crate::short_path(file), frame.line)
    }
}
