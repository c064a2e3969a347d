//! Random programs against a naive model. The model knows only what was asked for and what was
//! given back, keeps every counter as a plain sum, and never looks at how the allocator works.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use plimsoll_memory::{Arena, Block, Configuration, Kind, OriginId, Request, Site, StreamId};
use proptest::prelude::*;
use support::arena;

#[derive(Clone, Debug)]
enum Step {
    Allocate { bytes: usize, stream: u64, kind: usize, origin: u32 },
    Free { pick: usize },
    UseOn { pick: usize, stream: u64 },
    Pass { stream: u64 },
    SetKind { pick: usize, kind: usize },
    EmptyCache,
    ResetPeaks,
    OpenScope,
    CloseScope { pick: usize },
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0_usize..3000,
        3 => 0_usize..300_000,
        2 => (1_usize << 20) - 600..(1 << 20) + 600,
        2 => (1_usize << 20)..(12 << 20),
        1 => (10_usize << 20)..(40 << 20),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (sizes(), 0_u64..3, 0_usize..8, 0_u32..5).prop_map(|(bytes, stream, kind, origin)| {
            Step::Allocate { bytes, stream, kind, origin }
        }),
        8 => any::<usize>().prop_map(|pick| Step::Free { pick }),
        2 => (any::<usize>(), 0_u64..3).prop_map(|(pick, stream)| Step::UseOn { pick, stream }),
        2 => (0_u64..3).prop_map(|stream| Step::Pass { stream }),
        2 => (any::<usize>(), 0_usize..8).prop_map(|(pick, kind)| Step::SetKind { pick, kind }),
        1 => Just(Step::EmptyCache),
        1 => Just(Step::ResetPeaks),
        1 => Just(Step::OpenScope),
        1 => any::<usize>().prop_map(|pick| Step::CloseScope { pick }),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 40 } else { 250 })
}

/// A live block and the streams beside its own that use it.
struct Held {
    block: Block,
    uses: Vec<StreamId>,
}

/// A freed block that other streams still use.
struct Waiting {
    address: usize,
    bytes: usize,
    requested: usize,
    streams: Vec<StreamId>,
}

#[derive(Default)]
struct Model {
    held: Vec<Held>,
    waiting: Vec<Waiting>,
    allocated_peak: usize,
    allocated_total: usize,
    count_total: i64,
    /// (origin, kind) -> bytes, when allocated bytes were last at a new peak.
    rows_at_peak: BTreeMap<(OriginId, Kind), usize>,
}

impl Model {
    fn allocated(&self) -> usize {
        self.held.iter().map(|held| held.block.allocated_bytes()).sum()
    }

    fn rows(&self) -> BTreeMap<(OriginId, Kind), usize> {
        let mut rows = BTreeMap::new();
        for held in self.held.iter().filter(|held| held.block.allocated_bytes() > 0) {
            let row = rows.entry((held.block.origin(), held.block.kind())).or_insert(0);
            *row += held.block.allocated_bytes();
        }
        rows
    }

    /// No two blocks in use overlap, live or waiting.
    fn overlap(&self) -> Option<(usize, usize)> {
        let live =
            self.held.iter().map(|held| (held.block.address(), held.block.allocated_bytes()));
        let waiting = self.waiting.iter().map(|waiting| (waiting.address, waiting.bytes));
        let mut ranges: Vec<_> = live.chain(waiting).filter(|range| range.1 > 0).collect();
        ranges.sort_unstable();
        let pair = ranges.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0);
        pair.map(|pair| (pair[0].0, pair[1].0))
    }

    fn agree(&self, arena: &Arena) -> Result<(), TestCaseError> {
        arena.check_balanced().map_err(TestCaseError::fail)?;
        prop_assert_eq!(self.overlap(), None);
        let stats = arena.stats();
        let nonempty = self.held.iter().filter(|held| held.block.allocated_bytes() > 0).count();
        let waiting_bytes: usize = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        let waiting_requested: usize = self.waiting.iter().map(|waiting| waiting.requested).sum();
        let requested: usize = self.held.iter().map(|held| held.block.requested_bytes()).sum();
        prop_assert_eq!(stats.allocated_bytes.all.current, self.allocated() as i64);
        prop_assert_eq!(stats.allocated_bytes.all.peak, self.allocated_peak as i64);
        prop_assert_eq!(stats.allocated_bytes.all.allocated, self.allocated_total as i64);
        prop_assert_eq!(stats.allocation.all.current, nonempty as i64);
        prop_assert_eq!(stats.allocation.all.allocated, self.count_total);
        prop_assert_eq!(stats.active.all.current, (nonempty + self.waiting.len()) as i64);
        prop_assert_eq!(stats.active_bytes.all.current, (self.allocated() + waiting_bytes) as i64);
        prop_assert_eq!(stats.requested_bytes.all.current, (requested + waiting_requested) as i64);
        prop_assert!(stats.reserved_bytes.all.current >= stats.active_bytes.all.current);
        let rows = |rows: Vec<plimsoll_memory::BreakdownRow>| -> BTreeMap<_, _> {
            rows.into_iter().map(|row| ((row.origin, row.kind), row.bytes)).collect()
        };
        prop_assert_eq!(rows(arena.live_by_origin()), self.rows());
        prop_assert_eq!(rows(arena.peak_by_origin()), self.rows_at_peak.clone());
        for (name, counter) in stats.pool_stats() {
            for (all, small, large) in [
                (counter.all.current, counter.small_pool.current, counter.large_pool.current),
                (counter.all.allocated, counter.small_pool.allocated, counter.large_pool.allocated),
                (counter.all.freed, counter.small_pool.freed, counter.large_pool.freed),
            ] {
                prop_assert_eq!(all, small + large, "{} over both pools", name);
            }
            prop_assert!(counter.all.peak >= counter.all.current, "{} peak", name);
        }
        Ok(())
    }
}

fn run(configuration: &Configuration, steps: &[Step]) -> Result<(), TestCaseError> {
    let (arena, helm) = arena(None, configuration);
    helm.slow_streams.store(true, Ordering::SeqCst);
    let mut model = Model::default();
    // Open scopes with the peak that the model saw since.
    let mut scopes = Vec::new();
    for step in steps {
        match *step {
            Step::Allocate { bytes, stream, kind, origin } => {
                let origin = OriginId::intern("program", Site::Foreign(origin));
                let (kind, stream) = (Kind::ALL[kind], StreamId(stream));
                let block = arena
                    .allocate(&Request { kind, stream, ..Request::new(bytes, origin) })
                    .map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert!(block.allocated_bytes() >= bytes);
                prop_assert_eq!(block.address() % 512, 0);
                model.count_total += i64::from(bytes > 0);
                model.allocated_total += block.allocated_bytes();
                model.held.push(Held { block, uses: Vec::new() });
            }
            Step::Free { pick } if !model.held.is_empty() => {
                let held = model.held.swap_remove(pick % model.held.len());
                let block = &held.block;
                if !held.uses.is_empty() && block.allocated_bytes() > 0 {
                    model.waiting.push(Waiting {
                        address: block.address(),
                        bytes: block.allocated_bytes(),
                        requested: block.requested_bytes(),
                        streams: held.uses,
                    });
                }
                drop(held.block);
            }
            Step::UseOn { pick, stream } if !model.held.is_empty() => {
                let count = model.held.len();
                let held = &mut model.held[pick % count];
                held.block.record_use(StreamId(stream));
                if held.block.stream() != StreamId(stream) && !held.uses.contains(&StreamId(stream))
                {
                    held.uses.push(StreamId(stream));
                }
            }
            Step::Pass { stream } => {
                helm.pass(StreamId(stream));
                for waiting in &mut model.waiting {
                    waiting.streams.retain(|of| *of != StreamId(stream));
                }
                model.waiting.retain(|waiting| !waiting.streams.is_empty());
            }
            Step::SetKind { pick, kind } if !model.held.is_empty() => {
                model.held[pick % model.held.len()].block.set_kind(Kind::ALL[kind]);
            }
            Step::EmptyCache => {
                (0..3).for_each(|stream| helm.pass(StreamId(stream)));
                model.waiting.clear();
                arena.empty_cache();
            }
            Step::ResetPeaks => {
                arena.reset_peak_stats();
                model.allocated_peak = model.allocated();
                model.rows_at_peak = model.rows();
            }
            Step::OpenScope => scopes.push((arena.scoped_peak(), model.allocated())),
            Step::CloseScope { pick } if !scopes.is_empty() => {
                let (scope, peak) = scopes.remove(pick % scopes.len());
                prop_assert_eq!(scope.allocated_bytes_peak(), peak);
            }
            _ => {}
        }
        if model.allocated() > model.allocated_peak {
            model.allocated_peak = model.allocated();
            model.rows_at_peak = model.rows();
        }
        for (_, peak) in &mut scopes {
            *peak = (*peak).max(model.allocated());
        }
        // Frees whose fences have passed complete at the next look.
        arena.pending_bytes();
        model.agree(arena)?;
    }
    for (scope, peak) in &scopes {
        prop_assert_eq!(scope.allocated_bytes_peak(), *peak);
    }
    drop(model);
    (0..3).for_each(|stream| helm.pass(StreamId(stream)));
    arena.empty_cache();
    prop_assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    prop_assert_eq!(arena.live_bytes(), 0);
    prop_assert!(helm.pages.lock().unwrap().is_empty() && helm.ranges.lock().unwrap().is_empty());
    arena.check_balanced().map_err(TestCaseError::fail)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn programs_agree_with_the_model(steps in steps()) {
        run(&Configuration::default(), &steps)?;
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn programs_agree_with_the_model_where_splitting_has_a_limit(steps in steps()) {
        let text = "max_split_size_mb:20,roundup_power2_divisions:4";
        run(&Configuration::parse(text).unwrap(), &steps)?;
    }

    #[test]
    fn programs_agree_with_the_model_where_segments_expand(steps in steps()) {
        run(&Configuration::default().with_expandable_segments(true), &steps)?;
    }

    #[test]
    fn programs_agree_with_the_model_where_segments_expand_under_limits(steps in steps()) {
        let text = "expandable_segments:True,max_split_size_mb:20,memory_soft_limit:30MiB,\
                    large_segment_size_mb:11,memory_limit:100GiB,garbage_collection_threshold:0.0004";
        run(&Configuration::parse(text).unwrap(), &steps)?;
    }

    #[test]
    fn programs_agree_with_the_model_without_caching(steps in steps()) {
        run(&Configuration::default().with_caching(false), &steps)?;
    }

    #[test]
    fn programs_agree_with_the_model_while_garbage_is_collected(steps in steps()) {
        let text = "memory_soft_limit:30MiB,memory_limit:100GiB,garbage_collection_threshold:0.0004";
        run(&Configuration::parse(text).unwrap(), &steps)?;
    }
}
