//! Whether the book balances: every counter recomputed from the blocks and segments themselves and
//! compared, and the structure of the blocks checked. For tests and for doubt; it walks everything.

use std::collections::{HashMap, HashSet};

use crate::allocator::arena::Arena;
use crate::allocator::records::{BlockState, NONE};
use crate::allocator::state::State;
use crate::book::breakdown::Moment;
use crate::book::ledger::LedgerCurrent;

impl Arena {
    /// Recomputes every counter from the blocks and compares; says what differs.
    ///
    /// # Errors
    /// A text naming the first difference found. There is none unless Plimsoll is wrong.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// arena.check_balanced().expect("counters, records and pools agree");
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn check_balanced(&self) -> Result<(), String> {
        let state = self.state();
        state.check_structure()?;
        state.check_counters()?;
        state.check_breakdown()
    }
}

impl State {
    /// Blocks tile their segments, links agree, free neighbours are merged, pools hold what is
    /// free, and what has no memory is whole pages.
    fn check_structure(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        for (number, segment) in self.segments.iter() {
            let (mut at, mut previous, mut address) = (segment.first_block, NONE, segment.address);
            let mut state_before = BlockState::Vacant;
            let page_bytes = self.rules.page_bytes(segment.pool);
            while at != NONE {
                let block = &self.blocks[at];
                let place = format!("block {at} of segment {number}: {block:?}");
                if block.address != address || block.previous != previous {
                    return Err(format!("{place} does not follow block {previous}"));
                }
                if block.segment != number
                    || block.pool != segment.pool
                    || block.state == BlockState::Vacant
                {
                    return Err(format!("{place} does not belong to {segment:?}"));
                }
                let merges = matches!(block.state, BlockState::Free | BlockState::Unmapped);
                if merges && block.state == state_before {
                    return Err(format!("{place} and the one before it are not merged"));
                }
                let pages = [block.address - segment.address, block.bytes];
                let whole_pages = pages.iter().all(|bytes| bytes.is_multiple_of(page_bytes));
                let may_lack_memory = segment.expandable && whole_pages;
                if !block.state.is_mapped() && !may_lack_memory {
                    return Err(format!("{place} has no memory and is not whole pages"));
                }
                if block.requested_bytes() > block.bytes {
                    return Err(format!("{place} is smaller than what was asked for"));
                }
                if !seen.insert(at) {
                    return Err(format!("{place} is in two places"));
                }
                (previous, state_before, address) = (at, block.state, address + block.bytes);
                at = block.next;
            }
            if address != segment.address + segment.bytes {
                return Err(format!("the blocks of segment {number} do not fill it: {segment:?}"));
            }
        }
        let records = self.blocks.iter().count();
        if seen.len() != records {
            return Err(format!("{records} block records, {} of them in segments", seen.len()));
        }
        let pooled: usize = self.lanes.iter().map(|lane| lane.count(&self.blocks)).sum();
        let free = self.blocks.iter().filter(|(_, block)| block.state == BlockState::Free);
        let cached = |segment: u32| self.caches(self.segments[segment].lane as usize);
        let free = free.filter(|(_, block)| cached(block.segment)).count();
        if pooled != free {
            return Err(format!("{free} free blocks are cached, {pooled} of them in pools"));
        }
        let listed = self.lanes.iter().flat_map(|lane| lane.unmapped()).copied();
        let listed: HashSet<u32> = listed.collect();
        let without = self.blocks.iter().filter(|(_, b)| b.state == BlockState::Unmapped);
        if listed != without.map(|(index, _)| index).collect() {
            return Err(format!("the unmapped blocks are not those of the lanes, {listed:?}"));
        }
        let pending =
            self.blocks.iter().filter(|(_, block)| block.state == BlockState::Pending).count();
        if pending != self.deferred.waiting_blocks() {
            let waiting = self.deferred.waiting_blocks();
            return Err(format!("{pending} blocks are pending, {waiting} wait for a fence"));
        }
        Ok(())
    }

    fn check_counters(&self) -> Result<(), String> {
        let mut truth = LedgerCurrent::default();
        for (_, segment) in self.segments.iter() {
            truth.reserved_bytes[segment.pool as usize] += self.reserved_in(segment) as i64;
            if !segment.expandable {
                truth.segment[segment.pool as usize] += 1;
                truth.oversize[1] += i64::from(segment.bytes >= self.rules.max_split_bytes);
            }
        }
        for (_, block) in self.blocks.iter() {
            let (pool, bytes) = (block.pool as usize, block.bytes as i64);
            match block.state {
                BlockState::Free => {
                    let split = block.is_split() && !self.segments[block.segment].expandable;
                    truth.inactive_split[pool] += i64::from(split);
                    truth.inactive_split_bytes[pool] += if split { bytes } else { 0 };
                    continue;
                }
                BlockState::Unmapped | BlockState::Leaving => continue,
                BlockState::Allocated => {
                    truth.allocation[pool] += 1;
                    truth.allocated_bytes[pool] += bytes;
                    truth.oversize[0] += i64::from(block.bytes >= self.rules.max_split_bytes);
                }
                BlockState::Pending | BlockState::Vacant => {}
            }
            truth.active[pool] += 1;
            truth.active_bytes[pool] += bytes;
            truth.requested_bytes[pool] += block.requested_bytes() as i64;
        }
        let book = self.ledger.current();
        if book == truth {
            return Ok(());
        }
        Err(format!("the ledger says\n{book:#?}\nbut the blocks are\n{truth:#?}"))
    }

    fn check_breakdown(&self) -> Result<(), String> {
        let mut truth = HashMap::new();
        for (_, block) in self.blocks.iter() {
            if block.state == BlockState::Allocated {
                let sum = truth.entry((block.origin, block.kind)).or_insert((0_usize, 0_usize));
                sum.0 += block.bytes;
                sum.1 += 1;
            }
        }
        let rows = self.ledger.by_origin(Moment::Now);
        let book: HashMap<_, _> =
            rows.iter().map(|row| ((row.origin, row.kind), (row.bytes, row.count))).collect();
        if book != truth {
            return Err(format!("the breakdown says {book:?} but the blocks are {truth:?}"));
        }
        let at_peak: usize =
            self.ledger.by_origin(self.ledger.peak()).iter().map(|r| r.bytes).sum();
        let peak = self.ledger.stats().allocated_bytes.all.peak;
        if at_peak as i64 != peak {
            return Err(format!("the rows at the peak add up to {at_peak}, the peak was {peak}"));
        }
        Ok(())
    }
}
