//! The layout of a snapshot file: which keys, in which order, with which values. It is the layout
//! of PyTorch 2.15's `torch.cuda.memory._snapshot()`, with three additions that its viewers accept:
//! `category` (by which the timeline is coloured) on blocks and on `alloc` entries, `step` on
//! blocks, and a top-level `plimsoll` dictionary with each device's name and counters.
//!
//! The viewer replays the trace backwards from the segments, so both must be of one moment; that is
//! why `DeviceSnapshot` is taken under one lock.

use std::collections::HashMap;

use super::frames::frames;
use super::sink::Sink;
use super::{DeviceSnapshot, Snapshot};
use crate::book::event::{Action, Event};
use crate::book::history::Entry;
use crate::book::pool::Pool;
use crate::origin::annotations::Stage;
use crate::origin::intern::OriginId;
use crate::origin::iteration::epoch_of_step;
use crate::origin::kind::Kind;
use crate::snapshot::view::{BlockUse, BlockView, SegmentView};

/// Writes the whole snapshot as one dictionary.
pub(super) fn write(snapshot: &Snapshot, out: &mut impl Sink) {
    out.begin_dict();
    out.key("segments");
    out.begin_list();
    for (index, device) in snapshot.devices.iter().enumerate() {
        device.segments.iter().for_each(|segment| write_segment(index, segment, out));
    }
    out.end_list();
    out.key("device_traces");
    out.begin_list();
    snapshot.devices.iter().for_each(|device| write_trace(device, out));
    out.end_list();
    out.key("allocator_settings");
    write_settings(snapshot, out);
    out.key("external_annotations");
    write_annotations(snapshot, out);
    out.key("plimsoll");
    write_plimsoll(snapshot, out);
    out.end_dict();
}

fn write_segment(device: usize, segment: &SegmentView, out: &mut impl Sink) {
    let sum = |counted: fn(&BlockView) -> usize| segment.blocks.iter().map(counted).sum::<usize>();
    let allocated = sum(|b| if b.state == BlockUse::Allocated { b.bytes } else { 0 });
    let active = sum(|b| if b.state == BlockUse::Inactive { 0 } else { b.bytes });
    let requested = sum(|b| if b.state == BlockUse::Inactive { 0 } else { b.requested_bytes });
    out.begin_dict();
    integer(out, "device", device);
    integer(out, "address", segment.address);
    integer(out, "total_size", segment.bytes);
    integer(out, "allocated_size", allocated);
    integer(out, "active_size", active);
    integer(out, "requested_size", requested);
    out.key("stream");
    out.integer(segment.stream.0.into());
    text(out, "segment_type", pool_word(segment.pool));
    out.key("segment_pool_id");
    let (graph, user) = segment.pool_id.pair();
    out.pair(graph.into(), user.into());
    out.key("is_expandable");
    out.flag(segment.expandable);
    out.key("frames");
    write_frames(segment.origin, out);
    out.key("blocks");
    out.begin_list();
    segment.blocks.iter().for_each(|block| write_block(block, out));
    out.end_list();
    out.end_dict();
}

fn write_block(block: &BlockView, out: &mut impl Sink) {
    let (state, live) = match block.state {
        BlockUse::Allocated => ("active_allocated", true),
        BlockUse::PendingFree => ("active_pending_free", true),
        BlockUse::Inactive => ("inactive", false),
    };
    out.begin_dict();
    integer(out, "address", block.address);
    integer(out, "size", block.bytes);
    integer(out, "requested_size", block.requested_bytes);
    text(out, "state", state);
    out.key("frames");
    write_frames(if live { block.origin } else { OriginId::UNKNOWN }, out);
    if live {
        text(out, "category", block.kind.category());
        out.key("step");
        out.integer(block.step.into());
        out.key("epoch");
        out.integer(epoch_of_step(block.step).into());
    }
    out.end_dict();
}

fn write_trace(device: &DeviceSnapshot, out: &mut impl Sink) {
    let kinds = last_kinds(&device.entries);
    out.begin_list();
    for (entry, kind) in device.entries.iter().zip(kinds) {
        write_entry(entry, kind, out);
    }
    out.end_list();
}

/// The kind to show on each entry. A block's kind is often known only after its allocation (what
/// backward needs becomes an activation when it is saved), and the viewer colours by the
/// allocation's entry: so that one gets the last kind that the block had.
fn last_kinds(entries: &[Entry]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = entries.iter().map(|entry| entry.event.kind).collect();
    let mut allocated_at: HashMap<usize, usize> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let event = &entry.event;
        match event.action {
            Action::Allocated => {
                allocated_at.insert(event.address, at);
            }
            Action::KindChanged { .. } | Action::FreeRequested => {
                if let Some(&allocation) = allocated_at.get(&event.address) {
                    kinds[allocation] = event.kind;
                }
            }
            _ => {}
        }
    }
    kinds
}

fn write_entry(entry: &Entry, kind: Kind, out: &mut impl Sink) {
    let event = &entry.event;
    out.begin_dict();
    text(out, "action", action_word(event));
    let address_key = match event.action {
        Action::OutOfMemory => "device_free",
        _ => "addr",
    };
    integer(out, address_key, event.address);
    integer(out, "size", event.requested_bytes);
    out.key("stream");
    out.integer(event.stream.0.into());
    out.key("time_us");
    out.integer(entry.time_us.into());
    text(out, "compile_context", "N/A");
    text(out, "user_metadata", &metadata(event));
    out.key("pool_id");
    out.pair(0, 0);
    out.key("frames");
    write_frames(entry.freed_by.unwrap_or(event.origin), out);
    if event.action == Action::Allocated {
        text(out, "category", kind.category());
    }
    out.end_dict();
}

fn action_word(event: &Event) -> &'static str {
    match event.action {
        Action::SegmentReserved => "segment_alloc",
        Action::SegmentReleased => "segment_free",
        Action::SegmentMapped => "segment_map",
        Action::SegmentUnmapped => "segment_unmap",
        Action::Allocated => "alloc",
        Action::FreeRequested => "free_requested",
        Action::FreeCompleted => "free_completed",
        Action::OutOfMemory => "oom",
        // Not the allocator's own bytes: as allocations they would lie outside every segment.
        Action::KindChanged { .. }
        | Action::OriginChanged
        | Action::ExternalAdded
        | Action::ExternalRemoved => "annotate",
    }
}

/// Words that the viewer shows with an entry.
fn metadata(event: &Event) -> String {
    match event.action {
        Action::KindChanged { from } => format!("{from} becomes {}", event.kind),
        Action::OriginChanged => format!("belongs to {}", event.origin.get().module),
        Action::ExternalAdded => format!("external {} added", event.kind),
        Action::ExternalRemoved => format!("external {} removed", event.kind),
        _ if event.step > 0 => format!("step {}", event.step),
        _ => String::new(),
    }
}

fn pool_word(pool: Pool) -> &'static str {
    match pool {
        Pool::Small => "small",
        Pool::Large => "large",
    }
}

/// A frame list. Events share a few of them, so each is written once where the format allows.
fn write_frames(origin: OriginId, out: &mut impl Sink) {
    let shared = origin.number() as u32;
    if out.again(shared) {
        return;
    }
    out.begin_list();
    for frame in frames(origin) {
        out.begin_dict();
        text(out, "name", &frame.name);
        text(out, "filename", &frame.filename);
        out.key("line");
        out.integer(frame.line.into());
        out.end_dict();
    }
    out.end_list();
    out.first(shared);
}

fn write_settings(snapshot: &Snapshot, out: &mut impl Sink) {
    let settings = &snapshot.configuration;
    let given = settings.to_text();
    out.begin_dict();
    text(out, "PYTORCH_CUDA_ALLOC_CONF", &given);
    text(out, "PLIMSOLL_CONF", &given);
    out.key("max_split_size");
    out.integer(settings.max_split_bytes.map_or(-1, |bytes| bytes as i128));
    out.key("garbage_collection_threshold");
    out.float(settings.garbage_collection_threshold.unwrap_or(0.0));
    out.key("expandable_segments");
    out.flag(settings.expandable_segments);
    out.key("pinned_num_register_threads");
    out.integer(1);
    for absent in [
        "release_lock_on_cudamalloc",
        "pinned_use_cuda_host_register",
        "graph_capture_record_stream_reuse",
    ] {
        out.key(absent);
        out.flag(false);
    }
    out.key("roundup_power2_divisions");
    out.begin_dict();
    for (slot, divisions) in settings.roundup_power2_divisions.iter().enumerate() {
        out.key(&(1usize << slot).to_string());
        out.integer((*divisions).into());
    }
    out.end_dict();
    let dropped = |device: &DeviceSnapshot| device.entries.first().is_some_and(|e| e.sequence > 0);
    out.key("trace_alloc_overflowed");
    out.flag(snapshot.devices.iter().any(dropped));
    let kept = snapshot.devices.iter().map(|device| device.history_entries).max();
    integer(out, "trace_alloc_max_entries", kept.unwrap_or(0));
    out.end_dict();
}

fn write_annotations(snapshot: &Snapshot, out: &mut impl Sink) {
    out.begin_list();
    for annotation in &snapshot.annotations {
        out.begin_dict();
        text(out, "name", &annotation.name);
        text(out, "stage", if annotation.stage == Stage::Start { "START" } else { "END" });
        // Steps and phases belong to the process; the viewer wants some device.
        integer(out, "device", 0);
        out.key("time_us");
        out.integer(annotation.time_us.into());
        out.end_dict();
    }
    out.end_list();
}

fn write_plimsoll(snapshot: &Snapshot, out: &mut impl Sink) {
    out.begin_dict();
    text(out, "version", env!("CARGO_PKG_VERSION"));
    out.key("devices");
    out.begin_list();
    for device in &snapshot.devices {
        out.begin_dict();
        text(out, "name", &device.device);
        out.key("memory_stats");
        out.begin_dict();
        for (name, value) in device.stats.entries() {
            out.key(&name);
            out.integer(value.into());
        }
        out.end_dict();
        out.key("external_bytes");
        out.integer(device.stats.external_bytes.current.into());
        out.end_dict();
    }
    out.end_list();
    out.end_dict();
}

fn text(out: &mut impl Sink, key: &str, value: &str) {
    out.key(key);
    out.text(value);
}

fn integer(out: &mut impl Sink, key: &str, value: usize) {
    out.key(key);
    out.integer(value as i128);
}
