//! Making room by evicting neighbours: the run that the arena names is the cheapest there is, and
//! freeing it is enough where freeing as many bytes by age is not.

use std::collections::HashMap;
use std::sync::Mutex;

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Block, BlockUse, Configuration, DrySource, OriginId, Owner, Reclaim, Request, Run,
    Shortage,
};
use proptest::prelude::*;

const MIB: usize = 1 << 20;

/// Owns blocks and gives up what the arena names; or, to compare, its oldest ones.
struct Holder {
    arena: &'static Arena,
    held: Mutex<HashMap<Owner, (u64, Block)>>,
    by_age: bool,
    runs: Mutex<Vec<Run>>,
}

impl Holder {
    fn new(limit_bytes: usize, by_age: bool) -> &'static Holder {
        let source = Box::new(DrySource::new(None));
        let arena = Arena::open(Device::cpu(), source, &Configuration::default());
        arena.set_limit(Some(limit_bytes));
        let (held, runs) = (Mutex::default(), Mutex::default());
        let holder: &'static Holder = Box::leak(Box::new(Holder { arena, held, by_age, runs }));
        arena.set_reclaimer(holder);
        holder
    }

    fn hold(&self, number: u32, bytes: usize, cost: u64) {
        let block = self.arena.allocate(&Request::new(bytes, OriginId::UNKNOWN)).unwrap();
        block.set_owner(Owner::new(number));
        self.held.lock().unwrap().insert(Owner::new(number), (cost, block));
    }

    fn count(&self) -> usize {
        self.held.lock().unwrap().len()
    }
}

impl Reclaim for Holder {
    fn reclaim(&self, shortage: &Shortage) -> usize {
        let mut held = self.held.lock().unwrap();
        if self.by_age {
            let mut freed = 0;
            while freed < shortage.wanted_bytes {
                // What costs least is the oldest here.
                let Some(oldest) = held.iter().min_by_key(|(_, held)| held.0) else { break };
                let owner = *oldest.0;
                freed += held.remove(&owner).map_or(0, |(_, block)| block.allocated_bytes());
            }
            return freed;
        }
        let costs: HashMap<Owner, u64> =
            held.iter().map(|(&owner, held)| (owner, held.0)).collect();
        let Some(run) = self.arena.cheapest_run(shortage, |owner| costs.get(&owner).copied())
        else {
            return 0;
        };
        run.owners.iter().for_each(|owner| drop(held.remove(owner)));
        let bytes = run.bytes;
        self.runs.lock().unwrap().push(run);
        bytes
    }
}

#[test]
fn a_run_of_neighbours_makes_room_where_age_does_not() {
    // Two segments of ten blocks; in each, every other block is old.
    let fill = |holder: &Holder| {
        for number in 0..20_u32 {
            holder.hold(number, 2 * MIB, u64::from(number % 2) * 100 + u64::from(number));
        }
    };
    let by_age = Holder::new(40 * MIB, true);
    fill(by_age);
    let large = by_age.arena.allocate(&Request::new(6 * MIB, OriginId::UNKNOWN)).unwrap();
    assert_eq!(by_age.count(), 0, "all ten old ones lie apart, so that everything went");
    drop(large);

    let by_run = Holder::new(40 * MIB, false);
    fill(by_run);
    let large = by_run.arena.allocate(&Request::new(6 * MIB, OriginId::UNKNOWN)).unwrap();
    // 0, 1 and 2: two old ones and the one between them.
    let run = by_run.runs.lock().unwrap()[0].clone();
    assert_eq!(run.owners, [0, 1, 2].map(Owner::new));
    assert_eq!((run.bytes, run.cost), (6 * MIB, 101 + 2));
    assert_eq!(by_run.count(), 17);
    by_run.arena.check_balanced().unwrap();
    drop(large);
}

#[test]
fn a_whole_segment_is_freed_for_a_block_that_needs_one() {
    let holder = Holder::new(40 * MIB, false);
    for number in 0..20_u32 {
        holder.hold(number, 2 * MIB, if number < 10 { 7 } else { 5 });
    }
    // 20 MiB need a segment of their own; the second one is cheaper.
    let large = holder.arena.allocate(&Request::new(20 * MIB, OriginId::UNKNOWN)).unwrap();
    let run = holder.runs.lock().unwrap()[0].clone();
    assert_eq!(run.owners, (10..20).map(Owner::new).collect::<Vec<_>>());
    assert_eq!((holder.runs.lock().unwrap().len(), run.cost), (1, 50));
    drop(large);
}

#[test]
fn blocks_without_an_owner_stay() {
    let holder = Holder::new(20 * MIB, false);
    let mut kept = Vec::new();
    for number in 0..10_u32 {
        if number % 3 == 2 {
            kept.push(holder.arena.allocate(&Request::new(2 * MIB, OriginId::UNKNOWN)).unwrap());
        } else {
            holder.hold(number, 2 * MIB, 1);
        }
    }
    let two = holder.arena.allocate(&Request::new(4 * MIB, OriginId::UNKNOWN)).unwrap();
    let error = holder.arena.allocate(&Request::new(6 * MIB, OriginId::UNKNOWN)).unwrap_err();
    assert!(error.is_out_of_memory(), "no three neighbours can go: {error}");
    assert_eq!(holder.count(), 5, "and nothing was given up in vain");
    drop((two, kept));
}

/// The cheapest run by trying all of them.
fn brute_force(arena: &Arena, owners: &HashMap<usize, u64>, needed: usize) -> Option<u64> {
    let mut best = None;
    for segment in arena.segments() {
        for from in 0..segment.blocks.len() {
            let (mut bytes, mut sum) = (0, 0);
            for block in &segment.blocks[from..] {
                match (block.state, owners.get(&block.address)) {
                    (BlockUse::Inactive, _) => {}
                    (BlockUse::Allocated, Some(cost)) => sum += cost,
                    _ => break,
                }
                bytes += block.bytes;
                if bytes >= needed {
                    best = Some(best.map_or(sum, |best: u64| best.min(sum)));
                    break;
                }
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, ..Default::default() })]

    #[test]
    fn the_named_run_is_the_cheapest(
        blocks in proptest::collection::vec((1..5_usize, 0..50_u64, 0..4_u32), 4..40),
        wanted in 2..9_usize,
    ) {
        let holder = Holder::new(40 * MIB, false);
        let mut costs = HashMap::new();
        let mut kept = Vec::new();
        for (number, &(size, cost, fate)) in blocks.iter().enumerate() {
            // Past the limit the holder would begin to give up.
            let live = holder.arena.stats().allocated_bytes.all.current as usize;
            if live + (size + 2) * MIB > 36 * MIB {
                break;
            }
            match holder.arena.allocate(&Request::new((size + 1) * MIB, OriginId::UNKNOWN)) {
                Ok(block) if fate == 0 => drop(block),
                Ok(block) if fate == 1 => kept.push(block),
                Ok(block) => {
                    let owner = Owner::new(number as u32);
                    block.set_owner(owner);
                    costs.insert(block.address(), cost);
                    holder.held.lock().unwrap().insert(owner, (cost, block));
                }
                Err(_) => break,
            }
        }
        holder.runs.lock().unwrap().clear();
        let expected = brute_force(holder.arena, &costs, wanted * MIB);
        let before = holder.count();
        let outcome = holder.arena.allocate(&Request::new(wanted * MIB, OriginId::UNKNOWN));
        let runs = holder.runs.lock().unwrap().clone();
        if let Some(run) = runs.first() {
            prop_assert!(expected.is_none_or(|cost| run.cost <= cost), "{run:?} for {expected:?}");
            prop_assert!(holder.count() <= before - run.owners.len());
            prop_assert!(outcome.is_ok());
        }
        holder.arena.check_balanced().map_err(TestCaseError::fail)?;
    }
}
