//! Where each allocation stands in the picture: one offset for its whole life, so that it is one
//! rectangle that never moves. PyTorch's viewer lets everything above a freed block sink, which
//! costs shapes by events times live blocks; here a freed place stays free until something fits.
//! Offsets have nothing to do with addresses.

use std::collections::{BTreeMap, BTreeSet};

/// Gaps of the same power of two that are looked at before a larger class is asked.
const MOST_TRIES: usize = 8;

/// Free places below the top, by size class, and the top itself.
#[derive(Debug, Default)]
pub(crate) struct Stacking {
    /// Start to end of every gap below the top.
    gaps: BTreeMap<u64, u64>,
    /// Starts of gaps by the power of two below their bytes.
    classes: Vec<BTreeSet<u64>>,
    top: u64,
    highest: u64,
}

fn class(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

impl Stacking {
    pub(crate) fn new() -> Stacking {
        Stacking { classes: vec![BTreeSet::new(); 64], ..Stacking::default() }
    }

    /// The highest place that was ever in use.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// A low place for `bytes`: about the lowest that fits.
    pub(crate) fn place(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.max(1);
        let start = match self.lowest_gap(bytes) {
            Some(start) => {
                let end = self.remove_gap(start);
                if start + bytes < end {
                    self.insert_gap(start + bytes, end);
                }
                start
            }
            None => {
                let start = self.top;
                // Sizes in a hostile file may add up to more than there are numbers.
                self.top = start.saturating_add(bytes);
                start
            }
        };
        self.highest = self.highest.max(self.top);
        start
    }

    /// Gives a place back; gaps that touch become one.
    pub(crate) fn free(&mut self, start: u64, bytes: u64) {
        let (mut start, mut end) = (start, start.saturating_add(bytes.max(1)));
        if end <= start {
            return;
        }
        if let Some((&before, _)) = self.gaps.range(..start).next_back().filter(|g| *g.1 == start) {
            self.remove_gap(before);
            start = before;
        }
        if self.gaps.contains_key(&end) {
            end = self.remove_gap(end);
        }
        match end == self.top {
            true => self.top = start,
            false => self.insert_gap(start, end),
        }
    }

    fn lowest_gap(&self, bytes: u64) -> Option<u64> {
        let own = class(bytes);
        let fits = |start: &u64| self.gaps.get(start).is_some_and(|end| end - start >= bytes);
        let near = self.classes[own].iter().take(MOST_TRIES).find(|start| fits(start)).copied();
        let larger = self.classes[own + 1..].iter().filter_map(|starts| starts.first().copied());
        near.into_iter().chain(larger).min()
    }

    fn insert_gap(&mut self, start: u64, end: u64) {
        self.gaps.insert(start, end);
        self.classes[class(end - start)].insert(start);
    }

    fn remove_gap(&mut self, start: u64) -> u64 {
        let end = self.gaps.remove(&start).unwrap_or(start);
        self.classes[class(end - start)].remove(&start);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn freed_places_are_used_again_and_the_top_sinks() {
        let mut stacking = Stacking::new();
        let (a, b, c) = (stacking.place(100), stacking.place(50), stacking.place(10));
        assert_eq!((a, b, c), (0, 100, 150));
        stacking.free(a, 100);
        assert_eq!(stacking.place(60), 0);
        assert_eq!(stacking.place(40), 60);
        stacking.free(c, 10);
        stacking.free(b, 50);
        assert_eq!(stacking.top, 100);
        assert!(stacking.gaps.is_empty());
        assert_eq!(stacking.highest(), 160);
    }

    proptest! {
        /// What lives at the same time never overlaps, and an empty stack is empty again.
        #[test]
        fn places_never_overlap(steps in prop::collection::vec((1u64..5000, 0usize..8), 1..300)) {
            let mut stacking = Stacking::new();
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (bytes, turn) in steps {
                if turn < 3 && !live.is_empty() {
                    let (start, bytes) = live.swap_remove(bytes as usize % live.len());
                    stacking.free(start, bytes);
                    continue;
                }
                let start = stacking.place(bytes);
                for (other, size) in &live {
                    prop_assert!(start + bytes <= *other || other + size <= start);
                }
                live.push((start, bytes));
            }
            for (start, bytes) in live {
                stacking.free(start, bytes);
            }
            prop_assert_eq!(stacking.top, 0);
            prop_assert!(stacking.gaps.is_empty());
        }
    }
}
