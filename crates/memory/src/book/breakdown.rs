//! Bytes and counts of live blocks by origin and kind, now and at the peak.
//!
//! Note [Peaks by epochs]: keeping a copy of every row at each new peak would cost O(rows) an
//! allocation while memory grows. Instead the ledger numbers the peaks (epochs). A row saves its
//! figures the first time it changes after a peak; a row that has not changed since is as it was.
//! So a new peak costs O(1), and reading the rows at the peak costs one pass.

use std::collections::HashMap;
use std::hash::Hash;

use crate::origin::intern::{Origin, OriginId};
use crate::origin::kind::Kind;

/// Live memory of one origin and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakdownRow {
    /// Who asked for it; [`OriginId::UNKNOWN`] in a breakdown by kind alone.
    pub origin: OriginId,
    /// What for.
    pub kind: Kind,
    /// Bytes, after rounding.
    pub bytes: usize,
    /// Blocks.
    pub count: usize,
}

/// What one part of a whole holds: a module, or a phase of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<P> {
    /// The part.
    pub part: P,
    /// Bytes, after rounding.
    pub bytes: usize,
    /// Blocks.
    pub count: usize,
}

/// The rows summed by a part of their origins, largest first.
pub(crate) fn shares<P: Copy + Eq + Hash + Ord>(
    rows: &[BreakdownRow],
    part_of: impl Fn(&Origin) -> P,
) -> Vec<Share<P>> {
    let mut sums: HashMap<P, (usize, usize)> = HashMap::new();
    for row in rows {
        let sum = sums.entry(part_of(&row.origin.get())).or_default();
        *sum = (sum.0 + row.bytes, sum.1 + row.count);
    }
    let share = |(part, (bytes, count))| Share { part, bytes, count };
    let mut shares: Vec<Share<P>> = sums.into_iter().map(share).collect();
    shares.sort_unstable_by(|a, b| b.bytes.cmp(&a.bytes).then(a.part.cmp(&b.part)));
    shares
}

/// One cache line, because every allocation and free writes one.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Tally {
    bytes: i64,
    count: i64,
    /// Bytes and count at peak `epoch`, valid only while that is the newest one.
    peak_bytes: i64,
    peak_count: i64,
    epoch: u64,
    origin: OriginId,
    kind: Kind,
}

/// Which figures of a row are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Now,
    /// The newest peak, which has this epoch.
    Peak(u64),
}

/// The rows of one arena.
#[derive(Debug, Default)]
pub(crate) struct Breakdown {
    rows: Vec<Tally>,
    /// Row number plus one of each origin (times the number of kinds, plus the kind); 0 is none.
    numbers: Vec<u32>,
}

impl Breakdown {
    /// The place of this origin and kind among the rows.
    #[inline]
    fn row(&mut self, origin: OriginId, kind: Kind) -> usize {
        let place = origin.number() * Kind::COUNT + kind as usize;
        match self.numbers.get(place) {
            Some(&number) if number != 0 => number as usize - 1,
            _ => self.new_row(place, origin, kind),
        }
    }

    #[cold]
    fn new_row(&mut self, place: usize, origin: OriginId, kind: Kind) -> usize {
        if self.numbers.len() <= place {
            self.numbers.resize((place + 1).next_power_of_two(), 0);
        }
        self.numbers[place] = self.rows.len() as u32 + 1;
        self.rows.push(Tally {
            bytes: 0,
            count: 0,
            peak_bytes: 0,
            peak_count: 0,
            epoch: 0,
            origin,
            kind,
        });
        self.rows.len() - 1
    }

    /// Adds to the row of this origin and kind. `epoch` is the newest peak's.
    /// See Note [Peaks by epochs].
    #[inline]
    pub(crate) fn change(
        &mut self,
        (origin, kind): (OriginId, Kind),
        bytes: i64,
        count: i64,
        epoch: u64,
    ) {
        let row = self.row(origin, kind);
        let tally = &mut self.rows[row];
        if tally.epoch != epoch {
            tally.epoch = epoch;
            tally.peak_bytes = tally.bytes;
            tally.peak_count = tally.count;
        }
        tally.bytes += bytes;
        tally.count += count;
    }

    /// The rows with bytes at `moment`, largest first.
    pub(crate) fn by_origin(&self, moment: Moment) -> Vec<BreakdownRow> {
        let rows = self.rows.iter().map(|tally| tally.at(moment));
        let mut rows: Vec<BreakdownRow> = rows.filter(|row| row.count > 0).collect();
        rows.sort_unstable_by(|a, b| b.bytes.cmp(&a.bytes).then(a.origin.cmp(&b.origin)));
        rows
    }

    /// The sums by kind at `moment`, largest first; kinds without blocks are left out.
    pub(crate) fn by_kind(&self, moment: Moment) -> Vec<BreakdownRow> {
        let mut sums = Kind::ALL.map(|kind| BreakdownRow {
            origin: OriginId::UNKNOWN,
            kind,
            bytes: 0,
            count: 0,
        });
        for row in self.rows.iter().map(|tally| tally.at(moment)) {
            sums[row.kind as usize].bytes += row.bytes;
            sums[row.kind as usize].count += row.count;
        }
        let mut rows: Vec<BreakdownRow> = sums.into_iter().filter(|row| row.count > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }
}

impl Tally {
    fn at(&self, moment: Moment) -> BreakdownRow {
        let (bytes, count) = match moment {
            Moment::Peak(epoch) if epoch == self.epoch => (self.peak_bytes, self.peak_count),
            _ => (self.bytes, self.count),
        };
        BreakdownRow {
            origin: self.origin,
            kind: self.kind,
            bytes: bytes as usize,
            count: count as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::site::Site;

    #[test]
    fn a_row_remembers_the_peak_through_later_changes() {
        let mut breakdown = Breakdown::default();
        let a = (OriginId::intern("breakdown a", Site::Unknown), Kind::Parameter);
        let b = (OriginId::intern("breakdown b", Site::Unknown), Kind::Gradient);
        breakdown.change(a, 100, 1, 1);
        breakdown.change(b, 50, 1, 2);
        // The third peak is here: 150 bytes. Then b goes and a shrinks and grows again.
        breakdown.change(b, -50, -1, 3);
        breakdown.change(a, -40, 0, 3);
        breakdown.change(a, 10, 0, 3);
        let bytes = |moment| -> Vec<usize> {
            breakdown.by_origin(moment).iter().map(|row| row.bytes).collect()
        };
        assert_eq!(bytes(Moment::Now), [70]);
        assert_eq!(bytes(Moment::Peak(3)), [100, 50]);
        assert_eq!(breakdown.by_kind(Moment::Peak(3)).len(), 2);
        assert_eq!(breakdown.by_kind(Moment::Now)[0].kind, Kind::Parameter);
    }
}
