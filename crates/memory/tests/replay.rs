//! Recorded and generated allocation traces, replayed: Plimsoll's allocator reserves no more at
//! peak than PyTorch's rules do, and with expandable segments puts every block where PyTorch's
//! rules for them do. `cargo test --test replay -- --nocapture` prints the table.

#[path = "replay/expandable_rules.rs"]
mod expandable_rules;
#[path = "replay/patterns.rs"]
mod patterns;
#[path = "replay/pytorch_rules.rs"]
mod pytorch_rules;
#[path = "replay/trace.rs"]
mod trace;

use std::collections::HashMap;

use expandable_rules::{ExpandableRules, Place};
use plimsoll_core::{Device, DeviceKind};
use plimsoll_memory::{
    Arena, Block, Configuration, DrySource, Kind, OriginId, Request, Site, StreamId,
};
use proptest::prelude::*;
use pytorch_rules::PytorchRules;
use trace::TraceEvent;

/// All traces; miri, a thousand times slower, takes a short one: it looks at the memory, not the
/// figures.
fn traces() -> Vec<(&'static str, Vec<TraceEvent>)> {
    if cfg!(miri) {
        return recorded().drain(1..2).collect();
    }
    recorded().into_iter().chain(patterns::all()).collect()
}

fn recorded() -> Vec<(&'static str, Vec<TraceEvent>)> {
    vec![
        ("clean_training", trace::parse(include_str!("data/clean_training.trace"))),
        ("leak_losses_keep_graph", trace::parse(include_str!("data/leak_losses_keep_graph.trace"))),
        ("oom_activations", trace::parse(include_str!("data/oom_activations.trace"))),
    ]
}

/// Sizes by allocation number.
fn sizes(events: &[TraceEvent]) -> Vec<usize> {
    let mut sizes = Vec::new();
    for event in events {
        if let TraceEvent::Allocate { id, bytes, .. } = *event {
            assert_eq!(id, sizes.len(), "allocations are numbered in order");
            sizes.push(bytes);
        }
    }
    sizes
}

/// Runs the reference model; where the trace says that PyTorch reserved a segment, the model must
/// have done so for the next allocation, and nowhere else.
fn by_pytorch_rules(events: &[TraceEvent], check_segments: bool) -> PytorchRules {
    let sizes = sizes(events);
    let mut model = PytorchRules::default();
    let mut segment = None;
    for event in events {
        match *event {
            TraceEvent::Segment { bytes } => segment = Some(bytes),
            TraceEvent::Allocate { id, bytes, stream } => {
                let reserved = model.allocate(id, bytes, stream);
                if check_segments {
                    assert_eq!(reserved, segment.take(), "allocation {id} of {bytes} bytes");
                }
            }
            TraceEvent::Free { id } => model.free(id, sizes[id]),
        }
    }
    model
}

#[cfg(not(miri))]
#[test]
fn the_model_reserves_what_pytorch_reserved_where_it_did() {
    for (name, events) in recorded() {
        let model = by_pytorch_rules(&events, true);
        let segments: usize = events
            .iter()
            .map(|e| if let TraceEvent::Segment { bytes } = e { *bytes } else { 0 })
            .sum();
        assert!(segments > 0, "{name}");
        assert_eq!(model.reserved_bytes_peak, segments, "{name}");
    }
}

/// What one arena did with a trace.
struct Replayed {
    reserved_bytes_peak: usize,
    allocated_bytes_peak: usize,
    segments: usize,
}

fn dry_arena(configuration: &Configuration) -> &'static Arena {
    let device = Device::from_slot(0, DeviceKind::Cpu, 0, true);
    Arena::open(device, Box::new(DrySource::new(None)), configuration)
}

fn expandable() -> Configuration {
    Configuration::default().with_expandable_segments(true)
}

/// Runs the allocator under test over a source without memory.
fn by_plimsoll(events: &[TraceEvent], configuration: &Configuration) -> Replayed {
    let arena = dry_arena(configuration);
    let origin = OriginId::intern("replay", Site::caller());
    let mut live = HashMap::new();
    for event in events {
        match *event {
            TraceEvent::Segment { .. } => {}
            TraceEvent::Allocate { id, bytes, stream } => {
                let kind = Kind::Unknown;
                let request =
                    Request { kind, stream: StreamId(stream), ..Request::new(bytes, origin) };
                live.insert(id, arena.allocate(&request).expect("no limit is set"));
            }
            TraceEvent::Free { id } => {
                live.remove(&id).expect("a live allocation is freed");
            }
        }
    }
    arena.check_balanced().expect("the ledger balances");
    let stats = arena.stats();
    Replayed {
        reserved_bytes_peak: stats.reserved_bytes.all.peak as usize,
        allocated_bytes_peak: stats.allocated_bytes.all.peak as usize,
        segments: stats.num_device_alloc as usize,
    }
}

#[test]
fn no_trace_reserves_more_at_peak_than_by_pytorch_rules() {
    let mut table = format!(
        "{:<34}{:>8}{:>16}{:>16}{:>16}{:>8}{:>16}\n",
        "trace", "events", "allocated peak", "PyTorch rules", "Plimsoll", "ratio", "expandable"
    );
    let mut worse = Vec::new();
    for (name, events) in traces() {
        let model = by_pytorch_rules(&events, false);
        let ours = by_plimsoll(&events, &Configuration::default());
        let expanded = by_plimsoll(&events, &expandable());
        let ratio = ours.reserved_bytes_peak as f64 / model.reserved_bytes_peak as f64;
        table += &format!(
            "{name:<34}{:>8}{:>16}{:>16}{:>16}{ratio:>8.3}{:>16}\n",
            events.len(),
            ours.allocated_bytes_peak,
            model.reserved_bytes_peak,
            ours.reserved_bytes_peak,
            expanded.reserved_bytes_peak,
        );
        assert!(
            ours.segments > 0 && ours.allocated_bytes_peak <= ours.reserved_bytes_peak,
            "{name}"
        );
        if ours.reserved_bytes_peak > model.reserved_bytes_peak {
            worse.push(name);
        }
    }
    print_table(&table);
    assert!(worse.is_empty(), "more than PyTorch's rules: {worse:?}\n{table}");
}

// Only the generators and the model run here: nothing for miri to look at, and slow under it.
#[cfg(not(miri))]
#[test]
fn the_generated_patterns_are_ten_and_differ() {
    let patterns = patterns::all();
    assert_eq!(patterns.len(), 10);
    for (name, events) in &patterns {
        let model = by_pytorch_rules(events, false);
        // A pattern that fits its first segments would compare nothing.
        assert!(model.segments() >= 4, "{name}: {} segments", model.segments());
    }
    let again = patterns::all();
    assert!(patterns.iter().zip(&again).all(|(a, b)| a.1 == b.1), "the same numbers every time");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 128 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_any_random_program(
        steps in prop::collection::vec((0usize..4, 9u32..26, 0usize..1 << 20, 0usize..64), 1..400),
    ) {
        let (mut events, mut live) = (Vec::new(), Vec::new());
        for (what, log2, extra, place) in steps {
            if what == 0 && !live.is_empty() {
                events.push(TraceEvent::Free { id: live.swap_remove(place % live.len()) });
            } else {
                let id = live.len() + events.iter().filter(|e| matches!(e, TraceEvent::Free { .. })).count();
                let bytes = (1 << log2) + extra % (1 << log2);
                events.push(TraceEvent::Allocate { id, bytes, stream: (place % 5 / 4) as u64 });
                live.push(id);
            }
        }
        let model = by_pytorch_rules(&events, false);
        let ours = by_plimsoll(&events, &Configuration::default());
        prop_assert!(ours.reserved_bytes_peak <= model.reserved_bytes_peak);
    }
}

/// An arena with expandable segments beside the reference: every block must lie where the reference
/// puts it, and as much be reserved, in as many calls.
struct Beside {
    arena: &'static Arena,
    model: ExpandableRules,
    live: HashMap<usize, Block>,
    /// Where the range of a pool (whether small) and stream starts.
    starts: HashMap<(bool, u64), usize>,
}

impl Beside {
    fn new() -> Beside {
        let (model, live, starts) = Default::default();
        Beside { arena: dry_arena(&expandable()), model, live, starts }
    }

    fn step(&mut self, event: &TraceEvent) {
        match *event {
            TraceEvent::Segment { .. } => return,
            TraceEvent::Allocate { id, bytes, stream } => {
                let request = Request::new(bytes, OriginId::UNKNOWN);
                let request = Request { stream: StreamId(stream), ..request };
                let block = self.arena.allocate(&request).expect("no limit is set");
                let Place { small, stream, offset, fresh } = self.model.allocate(id, bytes, stream);
                let start = self.starts.entry((small, stream)).or_default();
                *start = if fresh { block.address() } else { *start };
                assert_eq!(block.address() - *start, offset, "allocation {id} of {bytes} bytes");
                self.live.insert(id, block);
            }
            TraceEvent::Free { id } => {
                self.live.remove(&id).expect("a live allocation is freed");
                self.model.free(id);
            }
        }
        self.agree();
    }

    fn empty_cache(&mut self) {
        self.arena.empty_cache();
        self.model.empty_cache();
        self.agree();
    }

    fn agree(&self) {
        let stats = self.arena.stats();
        assert_eq!(stats.reserved_bytes.all.current, self.model.reserved_bytes as i64);
        assert_eq!(stats.reserved_bytes.all.peak, self.model.reserved_bytes_peak as i64);
        let calls = (stats.num_device_alloc, stats.num_device_free);
        assert_eq!(calls, (self.model.maps, self.model.unmaps));
    }
}

#[test]
fn expandable_segments_put_every_block_of_every_trace_where_pytorch_does() {
    for (name, events) in traces() {
        let mut beside = Beside::new();
        for (place, event) in events.iter().enumerate() {
            beside.step(event);
            if place % 997 == 996 {
                beside.empty_cache();
            }
        }
        beside.arena.check_balanced().unwrap_or_else(|difference| panic!("{name}: {difference}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expandable_segments_put_every_block_of_any_program_where_pytorch_does(
        steps in prop::collection::vec((0usize..9, 9u32..26, 0usize..1 << 20, 0usize..64), 1..300),
    ) {
        let mut beside = Beside::new();
        let mut live = Vec::new();
        for (id, (what, log2, extra, place)) in steps.into_iter().enumerate() {
            match what {
                0..4 if !live.is_empty() => {
                    beside.step(&TraceEvent::Free { id: live.swap_remove(place % live.len()) });
                }
                4 => beside.empty_cache(),
                _ => {
                    let bytes = (1 << log2) + extra % (1 << log2);
                    beside.step(&TraceEvent::Allocate { id, bytes, stream: (place % 5 / 4) as u64 });
                    live.push(id);
                }
            }
            beside.arena.check_balanced().map_err(TestCaseError::fail)?;
        }
        beside.live.clear();
        beside.arena.empty_cache();
        prop_assert_eq!(beside.arena.stats().reserved_bytes.all.current, 0);
    }
}

#[allow(clippy::print_stdout)]
fn print_table(table: &str) {
    print!("{table}");
}
