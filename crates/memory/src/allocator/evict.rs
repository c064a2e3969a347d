//! Which live blocks would have to go to make room. Whoever may take memory back says who owns a
//! block ([`Owner`]) and what each owner costs; the arena knows which blocks lie beside each other
//! and names the cheapest run of neighbours that is large enough.
//!
//! Freeing by age does not do that: the oldest blocks lie all over the segments, so that much is
//! freed and no piece of it is large enough. Nothing is freed here; see
//! [`Reclaim`](crate::Reclaim).

use crate::allocator::arena::Arena;
use crate::allocator::records::{BlockState, NONE, SegmentRecord};
use crate::allocator::shortage::{Owner, Shortage};
use crate::allocator::state::State;

/// Neighbours in one segment that make room once their owners gave them up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Who has to give up; each owns one block of the run.
    pub owners: Vec<Owner>,
    /// The bytes of the run, with the free blocks between them.
    pub bytes: usize,
    /// What the owners cost together.
    pub cost: u64,
}

/// One block as a run sees it: where it starts and ends, from the start of its segment, and what it
/// takes to free it.
#[derive(Clone, Copy)]
struct Step {
    from: usize,
    to: usize,
    cost: u64,
    owner: Option<Owner>,
}

impl Arena {
    /// The cheapest run of neighbouring blocks that would make room for the block that is missing:
    /// part of a segment of its own pool and stream, enough whole pages of any expandable segment,
    /// or any other segment that is large enough, whole.
    /// `cost` says what an owner costs, `None` if it cannot give up. It is called under the arena's
    /// lock, so it must only look things up.
    ///
    /// ```
    /// use plimsoll_core::Device;
    /// use plimsoll_memory::*;
    /// use std::collections::HashMap;
    /// use std::sync::Mutex;
    ///
    /// struct Holder(&'static Arena, Mutex<HashMap<Owner, Block>>);
    /// impl Reclaim for Holder {
    ///     fn reclaim(&self, shortage: &Shortage) -> usize {
    ///         let Some(run) = self.0.cheapest_run(shortage, |_| Some(1)) else { return 0 };
    ///         run.owners.iter().for_each(|owner| drop(self.1.lock().unwrap().remove(owner)));
    ///         run.bytes
    ///     }
    /// }
    /// let source = Box::new(HostSource::default());
    /// let arena = Arena::open(Device::cpu(), source, &Configuration::default());
    /// arena.set_limit(Some(20 << 20)); // one segment
    /// let holder: &Holder = Box::leak(Box::new(Holder(arena, Mutex::default())));
    /// arena.set_reclaimer(holder);
    /// for number in 0..10 {
    ///     let block = arena.allocate(&Request::new(2 << 20, OriginId::UNKNOWN))?;
    ///     block.set_owner(Owner::new(number));
    ///     holder.1.lock().unwrap().insert(Owner::new(number), block);
    /// }
    /// let large = arena.allocate(&Request::new(6 << 20, OriginId::UNKNOWN))?;
    /// assert_eq!(holder.1.lock().unwrap().len(), 7); // three neighbours went
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn cheapest_run(
        &self,
        shortage: &Shortage,
        cost: impl Fn(Owner) -> Option<u64>,
    ) -> Option<Run> {
        let wanted = shortage.block?;
        let state = self.state();
        let mut best: Option<Run> = None;
        for (_, segment) in state.segments.iter() {
            // A private pool serves no other, and its blocks have no owners to ask.
            if !state.lanes[segment.lane as usize].is_common() {
                continue;
            }
            let own = segment.pool == wanted.pool && segment.stream == wanted.stream;
            let (needed, page_bytes) = if own {
                (wanted.block_bytes, None)
            } else if segment.expandable {
                let page_bytes = state.rules.page_bytes(segment.pool);
                (wanted.segment_bytes.next_multiple_of(page_bytes), Some(page_bytes))
            } else if segment.bytes >= wanted.segment_bytes {
                (segment.bytes, None)
            } else {
                continue;
            };
            // What counts of a run, given its ends as distances from the segment's start.
            let useful = |from: usize, to: usize| match page_bytes {
                Some(page) => (to / page * page).saturating_sub(from.next_multiple_of(page)),
                None => to - from,
            };
            let found = state.cheapest_in(segment, |from, to| useful(from, to) >= needed, &cost);
            let better = |run: &Run| match &best {
                Some(best) => (run.cost, run.bytes) < (best.cost, best.bytes),
                None => true,
            };
            best = found.filter(better).or(best);
        }
        best
    }

    pub(crate) fn set_owner(&self, index: u32, owner: Owner) {
        self.state().blocks[index].set_owner(owner.0);
    }
}

impl State {
    /// The cheapest run in one segment that is `enough` from its start to its end. Costs are not
    /// negative, so of all runs that end at a block the shortest is the cheapest: two ends that
    /// only move forward find it. Blocks without memory end a run: nothing in it may be missing.
    fn cheapest_in(
        &self,
        segment: &SegmentRecord,
        enough: impl Fn(usize, usize) -> bool,
        cost: &impl Fn(Owner) -> Option<u64>,
    ) -> Option<Run> {
        let mut steps: Vec<Step> = Vec::new();
        let (mut first, mut sum) = (0, 0_u64);
        let mut best: Option<(u64, usize, std::ops::Range<usize>)> = None;
        let mut at = segment.first_block;
        while at != NONE {
            let block = &self.blocks[at];
            at = block.next;
            let owner = match block.state {
                BlockState::Free => Some((None, 0)),
                BlockState::Allocated if block.owner() != NONE => {
                    let owner = Owner(block.owner());
                    cost(owner).map(|cost| (Some(owner), cost))
                }
                _ => None,
            };
            let Some((owner, cost)) = owner else {
                // Nothing moves this one: runs begin anew behind it.
                (first, sum) = (steps.len(), 0);
                continue;
            };
            let from = block.address - segment.address;
            let to = from + block.bytes;
            steps.push(Step { from, to, cost, owner });
            sum = sum.saturating_add(cost);
            while first + 1 < steps.len() && enough(steps[first].to, to) {
                sum = sum.saturating_sub(steps[first].cost);
                first += 1;
            }
            let bytes = to - steps[first].from;
            let better = best.as_ref().is_none_or(|best| (sum, bytes) < (best.0, best.1));
            if enough(steps[first].from, to) && better {
                best = Some((sum, bytes, first..steps.len()));
            }
        }
        best.map(|(cost, bytes, range)| Run {
            owners: steps[range].iter().filter_map(|step| step.owner).collect(),
            bytes,
            cost,
        })
    }
}
