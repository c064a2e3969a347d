//! The free blocks of one size, as a pairing heap through the block records: the oldest segment
//! and lowest address first, which is PyTorch's order and the same on every run.
//!
//! Almost every size has one free block or none, where all of this is a few writes. A sorted list
//! was refused (thousands of equal free blocks make it slow), an ordered set of the library too (it
//! allocates memory under the lock).

use crate::allocator::records::{BlockSlab, HeapLinks, NONE, SegmentSlab};

/// Whether `a` comes before `b`.
#[inline]
fn before(blocks: &BlockSlab, segments: &SegmentSlab, a: u32, b: u32) -> bool {
    let (a, b) = (&blocks[a], &blocks[b]);
    (segments[a.segment].birth, a.address) < (segments[b.segment].birth, b.address)
}

/// One heap of two; the roots may be `NONE` and have no siblings.
fn meld(blocks: &mut BlockSlab, segments: &SegmentSlab, a: u32, b: u32) -> u32 {
    if a == NONE {
        return b;
    }
    if b == NONE {
        return a;
    }
    let (root, under) = if before(blocks, segments, b, a) { (b, a) } else { (a, b) };
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
#[inline(always)]
pub(crate) fn insert(blocks: &mut BlockSlab, segments: &SegmentSlab, root: u32, block: u32) -> u32 {
    blocks[block].links = HeapLinks::NONE;
    if root == NONE { block } else { meld(blocks, segments, root, block) }
}

/// The heap at `root` without `block`, which is in it; returns the new root. The block's own links
/// are left as they were; `insert` begins anew.
#[inline(always)]
pub(crate) fn remove(blocks: &mut BlockSlab, segments: &SegmentSlab, root: u32, block: u32) -> u32 {
    let links = blocks[block].links;
    if block == root && links.child == NONE {
        return NONE;
    }
    remove_of_several(blocks, segments, root, block)
}

fn remove_of_several(blocks: &mut BlockSlab, segments: &SegmentSlab, root: u32, block: u32) -> u32 {
    let links = blocks[block].links;
    if block == root {
        return meld_all(blocks, segments, links.child);
    }
    if blocks[links.back].links.child == block {
        blocks[links.back].links.child = links.sibling;
    } else {
        blocks[links.back].links.sibling = links.sibling;
    }
    if links.sibling != NONE {
        blocks[links.sibling].links.back = links.back;
    }
    let rest = meld_all(blocks, segments, links.child);
    meld(blocks, segments, root, rest)
}

/// One heap of all siblings from `first` on, which may be `NONE`. They are melded in pairs from the
/// left, then from the right, which is what makes removals cost O(log n) on average.
fn meld_all(blocks: &mut BlockSlab, segments: &SegmentSlab, first: u32) -> u32 {
    let mut pairs = NONE;
    let mut at = first;
    while at != NONE {
        let other = take_root(blocks, at);
        let next = if other == NONE { NONE } else { take_root(blocks, other) };
        let pair = meld(blocks, segments, at, other);
        blocks[pair].links.sibling = pairs;
        pairs = pair;
        at = next;
    }
    let mut root = NONE;
    while pairs != NONE {
        let next = take_root(blocks, pairs);
        root = meld(blocks, segments, root, pairs);
        pairs = next;
    }
    root
}

/// The block of the heap at `root` that comes right after `block`, which is in it.
pub(crate) fn after(
    blocks: &BlockSlab,
    segments: &SegmentSlab,
    root: u32,
    block: u32,
) -> Option<u32> {
    if blocks[root].links.child == NONE {
        return None;
    }
    let behind =
        members(blocks, root).into_iter().filter(|&at| before(blocks, segments, block, at));
    behind.min_by_key(|&at| (segments[blocks[at].segment].birth, blocks[at].address))
}

/// Every block of the heap at `root`, in no order.
pub(crate) fn members(blocks: &BlockSlab, root: u32) -> Vec<u32> {
    let mut found = Vec::from_iter((root != NONE).then_some(root));
    let mut next = 0;
    while let Some(&at) = found.get(next) {
        let links = blocks[at].links;
        found.extend([links.child, links.sibling].into_iter().filter(|&link| link != NONE));
        next += 1;
    }
    found
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
    use crate::allocator::records::{BlockRecord, BlockState, SegmentRecord};
    use crate::book::pool::Pool;
    use crate::origin::intern::OriginId;
    use crate::origin::kind::Kind;
    use crate::platform::source::StreamId;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const STEPS: usize = if cfg!(miri) { 80 } else { 200 };

    fn segment(birth: u64) -> SegmentRecord {
        SegmentRecord {
            address: 0,
            bytes: 2 << 20,
            stream: StreamId::DEFAULT,
            lane: 0,
            pool: Pool::Small,
            expandable: false,
            birth,
            first_block: NONE,
            origin: OriginId::UNKNOWN,
            step: 0,
        }
    }

    fn record(segment: u32, address: usize) -> BlockRecord {
        BlockRecord {
            address,
            bytes: 512,
            requested_or_freed_at: 0,
            step: 0,
            segment,
            previous: NONE,
            next: NONE,
            origin: OriginId::UNKNOWN,
            links: HeapLinks::NONE,
            state: BlockState::Free,
            pool: Pool::Small,
            kind: Kind::Unknown,
            shared: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against an ordered set: the root is always the first, whatever is put in and taken out.
        #[test]
        fn the_root_is_the_first_of_the_set(steps in prop::collection::vec((0_u64..4, 0_usize..64, any::<u16>()), 1..STEPS)) {
            let mut blocks = BlockSlab::new();
            let mut segments = SegmentSlab::default();
            let numbers: Vec<u32> = (0..4).map(|birth| segments.insert(segment(birth))).collect();
            let (mut root, mut set) = (NONE, BTreeSet::new());
            for (birth, place, pick) in steps {
                if pick % 3 == 0 && !set.is_empty() {
                    let taken: (u64, usize, u32) = *set.iter().nth(pick as usize % set.len()).unwrap();
                    set.remove(&taken);
                    root = remove(&mut blocks, &segments, root, taken.2);
                    blocks.remove(taken.2);
                } else if !set.iter().any(|&(b, a, _)| (b, a) == (birth, place * 512)) {
                    let index = blocks.insert(record(numbers[birth as usize], place * 512));
                    root = insert(&mut blocks, &segments, root, index);
                    set.insert((birth, place * 512, index));
                }
                prop_assert_eq!(root, set.first().map_or(NONE, |first| first.2));
                let walked: Vec<u32> = std::iter::successors((root != NONE).then_some(root), |&at| {
                    after(&blocks, &segments, root, at)
                })
                .collect();
                prop_assert!(walked.iter().eq(set.iter().map(|(_, _, index)| index)));
            }
        }
    }
}
