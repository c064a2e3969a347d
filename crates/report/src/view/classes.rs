//! Finds allocations by time without looking at all of them. Each belongs to a class: the power of
//! two of its bytes and of its life in positions. Within a class allocations lie by birth, and as
//! their lives are about equally long, those that touch a span of time are one contiguous run of at
//! most twice as many. An interval tree was refused: it needs pointers or two more columns and
//! cannot leave out what is too small to see.

use std::ops::Range;

use crate::analysis::Lives;

/// The classes of one device's allocations.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// Numbers of allocations, class by class, within a class by birth.
    order: Vec<u32>,
    classes: Vec<Class>,
}

/// One class: its allocations are `order[range]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Lives are in `2^life .. 2^(life + 1)` positions.
    pub(crate) life: u32,
    /// Bytes are in `2^bytes .. 2^(bytes + 1)`.
    pub(crate) bytes: u32,
    range: Range<usize>,
}

impl Class {
    /// Longer than any life in it, in positions.
    pub(crate) fn life_end(&self) -> f64 {
        f64::from(self.life + 1).exp2()
    }

    /// More than any of its bytes.
    pub(crate) fn bytes_end(&self) -> f64 {
        f64::from(self.bytes + 1).exp2()
    }
}

fn key(lives: &Lives, at: usize, end: u32) -> usize {
    let life = lives.died[at].min(end).saturating_sub(lives.born[at]).max(1).ilog2() as usize;
    life * 64 + lives.bytes[at].max(1).ilog2() as usize
}

impl Classes {
    /// Sorts the allocations of a device.
    pub(crate) fn new(lives: &Lives) -> Classes {
        // What was there before the trace has the later numbers and the earlier birth.
        let by_birth = || (lives.in_trace..lives.len()).chain(0..lives.in_trace);
        let end = lives.last_position() + 1;
        let keys = || by_birth().map(|at| (at, key(lives, at, end)));
        let mut next = vec![0usize; 32 * 64 + 1];
        for (_, key) in keys() {
            next[key + 1] += 1;
        }
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let classes = (0..32 * 64)
            .filter(|key| next[*key] < next[key + 1])
            .map(|key| Class {
                life: (key / 64) as u32,
                bytes: (key % 64) as u32,
                range: next[key]..next[key + 1],
            })
            .collect();
        let mut order = vec![0u32; lives.len()];
        for (at, key) in keys() {
            order[next[key]] = at as u32;
            next[key] += 1;
        }
        Classes { order, classes }
    }

    /// Every class that has members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter()
    }

    /// The members of a class that may be alive between the positions `from` and `to`, both
    /// included: everything that is, and at most about as many that died just before.
    pub(crate) fn near(&self, class: &Class, born: &[u32], from: u32, to: u32) -> &[u32] {
        let members = &self.order[class.range.clone()];
        let longest = 1u64 << (class.life + 1);
        let first = u64::from(from).saturating_sub(longest);
        let start = members.partition_point(|life| u64::from(born[*life as usize]) < first);
        let end = members.partition_point(|life| born[*life as usize] <= to);
        &members[start.min(end)..end]
    }

    /// Everything that is alive at a position, class by class.
    pub(crate) fn alive<'a>(&'a self, lives: &'a Lives, at: u32) -> impl Iterator<Item = u32> + 'a {
        self.classes
            .iter()
            .flat_map(move |class| self.near(class, &lives.born, at, at))
            .copied()
            .filter(move |life| lives.died[*life as usize] > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ALIVE;
    use proptest::prelude::*;

    proptest! {
        /// The same as looking at every allocation.
        #[test]
        fn whatever_is_alive_is_found(
            members in prop::collection::vec((0u32..400, 1u32..600, 1u64..1 << 40), 0..200),
            at in 0u32..500,
        ) {
            let mut members = members;
            members.sort_unstable();
            let before = members.iter().filter(|m| m.0 == 0).count();
            members.rotate_left(before);
            let mut lives = Lives { rows: 0..500, in_trace: members.len() - before, ..Lives::default() };
            for (born, life, bytes) in members {
                lives.addr.push(0);
                lives.born.push(born);
                lives.died.push(if born + life > 500 { ALIVE } else { born + life });
                lives.bytes.push(bytes);
            }
            let classes = Classes::new(&lives);
            let mut found: Vec<usize> = classes.alive(&lives, at).map(|l| l as usize).collect();
            found.sort_unstable();
            let expected: Vec<usize> = (0..lives.len()).filter(|l| lives.is_alive(*l, at)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(classes.order.len(), lives.len());
        }
    }
}
