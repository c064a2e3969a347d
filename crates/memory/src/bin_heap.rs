//! The free small blocks of one size, as a pairing heap through the block records: the oldest segment
//! and lowest address first, which is PyTorch's order and the same on every run.
//!
//! Almost every bin holds one block or none, where all of this is a few writes. A sorted list was
//! refused (thousands of equal free blocks make it slow), an ordered set of the library too (it
//! allocates memory under the lock).

use crate::records::{BlockSlab, HeapLinks, NONE};

/// Whether `a` comes before `b`.
#[inline]
fn before(blocks: &BlockSlab, a: u32, b: u32) -> bool {
    let (a, b) = (&blocks[a], &blocks[b]);
    (a.birth, a.address) < (b.birth, b.address)
}

/// One heap of two; the roots may be `NONE` and have no siblings.
#[inline]
fn meld(blocks: &mut BlockSlab, a: u32, b: u32) -> u32 {
    if a == NONE {
        return b;
    }
    if b == NONE {
        return a;
    }
    let (root, under) = if before(blocks, b, a) { (b, a) } else { (a, b) };
    let child = blocks[root].links.child;
    if child != NONE {
        blocks[child].links.back = under;
    }
    let links = &mut blocks[under].links;
    links.sibling = child;
    links.back = root;
    blocks[root].links.child = under;
    root
}

/// The heap at `root` with `block` in it; returns the new root.
#[inline]
pub(crate) fn insert(blocks: &mut BlockSlab, root: u32, block: u32) -> u32 {
    blocks[block].links = HeapLinks::NONE;
    meld(blocks, root, block)
}

/// The heap at `root` without `block`, which is in it; returns the new root.
#[inline]
pub(crate) fn remove(blocks: &mut BlockSlab, root: u32, block: u32) -> u32 {
    let links = blocks[block].links;
    blocks[block].links = HeapLinks::NONE;
    if block == root {
        return if links.child == NONE { NONE } else { meld_siblings(blocks, links.child) };
    }
    if blocks[links.back].links.child == block {
        blocks[links.back].links.child = links.sibling;
    } else {
        blocks[links.back].links.sibling = links.sibling;
    }
    if links.sibling != NONE {
        blocks[links.sibling].links.back = links.back;
    }
    let rest = meld_siblings(blocks, links.child);
    meld(blocks, root, rest)
}

/// One heap of all siblings from `first` on: melded in pairs from the left, then from the right, which
/// is what makes removals cost O(log n) on average.
fn meld_siblings(blocks: &mut BlockSlab, first: u32) -> u32 {
    let mut pairs = NONE;
    let mut at = first;
    while at != NONE {
        let other = take_root(blocks, at);
        let next = if other == NONE { NONE } else { take_root(blocks, other) };
        let pair = meld(blocks, at, other);
        blocks[pair].links.sibling = pairs;
        pairs = pair;
        at = next;
    }
    let mut root = NONE;
    while pairs != NONE {
        let next = take_root(blocks, pairs);
        root = meld(blocks, root, pairs);
        pairs = next;
    }
    root
}

/// Makes `block` a root of its own; returns the sibling it had.
fn take_root(blocks: &mut BlockSlab, block: u32) -> u32 {
    let links = &mut blocks[block].links;
    links.back = NONE;
    std::mem::replace(&mut links.sibling, NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::RowId;
    use crate::kind::Kind;
    use crate::origin::OriginId;
    use crate::records::{BlockRecord, BlockState};
    use crate::size_class::Pool;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn record(birth: u64, address: usize) -> BlockRecord {
        BlockRecord {
            address,
            bytes: 512,
            requested_bytes: 0,
            birth,
            step: 0,
            freed_at: 0,
            segment: 0,
            previous: NONE,
            next: NONE,
            lane: 0,
            origin: OriginId::UNKNOWN,
            row: RowId::default(),
            links: HeapLinks::NONE,
            state: BlockState::Free,
            pool: Pool::Small,
            kind: Kind::Unknown,
            shared: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against an ordered set: the root is always the first, whatever is put in and taken out.
        #[test]
        fn the_root_is_the_first_of_the_set(steps in prop::collection::vec((0_u64..4, 0_usize..64, any::<u16>()), 1..200)) {
            let mut blocks = BlockSlab::new();
            let (mut root, mut set) = (NONE, BTreeSet::new());
            for (birth, place, pick) in steps {
                if pick % 3 == 0 && !set.is_empty() {
                    let taken: (u64, usize, u32) = *set.iter().nth(pick as usize % set.len()).unwrap();
                    set.remove(&taken);
                    root = remove(&mut blocks, root, taken.2);
                    blocks.remove(taken.2);
                } else if !set.iter().any(|&(b, a, _)| (b, a) == (birth, place * 512)) {
                    let index = blocks.insert(record(birth, place * 512));
                    root = insert(&mut blocks, root, index);
                    set.insert((birth, place * 512, index));
                }
                prop_assert_eq!(root, set.first().map_or(NONE, |first| first.2));
            }
        }
    }
}
