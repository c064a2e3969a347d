//! Recorded and generated allocation traces, replayed: Plimsoll's allocator reserves no more at
//! peak than PyTorch's rules do. `cargo test --test replay -- --nocapture` prints the table.

#[path = "replay/patterns.rs"]
mod patterns;
#[path = "replay/pytorch_rules.rs"]
mod pytorch_rules;
#[path = "replay/trace.rs"]
mod trace;

use std::collections::HashMap;

use plimsoll_core::{Device, DeviceKind};
use plimsoll_memory::{Arena, Configuration, DrySource, Kind, OriginId, Request, Site, StreamId};
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

/// Runs the allocator under test over a source without memory.
fn by_plimsoll(events: &[TraceEvent]) -> Replayed {
    let device = Device::from_slot(0, DeviceKind::Cpu, 0, true);
    let arena = Arena::open(device, Box::new(DrySource::new(None)), &Configuration::default());
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
        "{:<34}{:>8}{:>16}{:>16}{:>16}{:>8}\n",
        "trace", "events", "allocated peak", "PyTorch rules", "Plimsoll", "ratio"
    );
    let mut worse = Vec::new();
    for (name, events) in traces() {
        let model = by_pytorch_rules(&events, false);
        let ours = by_plimsoll(&events);
        let ratio = ours.reserved_bytes_peak as f64 / model.reserved_bytes_peak as f64;
        table += &format!(
            "{name:<34}{:>8}{:>16}{:>16}{:>16}{ratio:>8.3}\n",
            events.len(),
            ours.allocated_bytes_peak,
            model.reserved_bytes_peak,
            ours.reserved_bytes_peak
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
        let (model, ours) = (by_pytorch_rules(&events, false), by_plimsoll(&events));
        prop_assert!(ours.reserved_bytes_peak <= model.reserved_bytes_peak);
    }
}

#[allow(clippy::print_stdout)]
fn print_table(table: &str) {
    print!("{table}");
}
