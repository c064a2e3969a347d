//! Which keys a snapshot has, in which order, with which values: the layout of PyTorch 2.15, plus
//! `category` and `step` where they are known.

use std::io;

use super::Sink;
use crate::events::Action;
use crate::kind::Kind;
use crate::segments::{Block, Segment};
use crate::snapshot::Snapshot;

pub(super) fn write(snapshot: &Snapshot, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_dict()?;
    let is_host = |segment: &&Segment| segment.device < 0;
    sink.key("segments")?;
    sink.begin_list()?;
    for segment in snapshot.segments.iter().filter(|segment| !is_host(segment)) {
        write_segment(snapshot, segment, sink)?;
    }
    sink.end_list()?;
    sink.key("device_traces")?;
    sink.begin_list()?;
    let last = snapshot.traces.iter().map(|trace| trace.device).max().unwrap_or(-1);
    for device in 0..=last {
        write_trace(snapshot, device, sink)?;
    }
    sink.end_list()?;
    sink.key("allocator_settings")?;
    write_settings(snapshot, sink)?;
    sink.key("external_annotations")?;
    write_annotations(snapshot, sink)?;
    if snapshot.segments.iter().any(|segment| is_host(&segment)) || !snapshot.rows_of(-1).is_empty()
    {
        sink.key("host_segments")?;
        sink.begin_list()?;
        for segment in snapshot.segments.iter().filter(is_host) {
            write_segment(snapshot, segment, sink)?;
        }
        sink.end_list()?;
        sink.key("host_traces")?;
        write_trace(snapshot, -1, sink)?;
    }
    if snapshot.writer.is_plimsoll {
        sink.key("plimsoll")?;
        write_plimsoll(snapshot, sink)?;
    }
    sink.end_dict()
}

fn write_segment(snapshot: &Snapshot, segment: &Segment, sink: &mut impl Sink) -> io::Result<()> {
    let blocks = snapshot.blocks_of(segment);
    let sum = |of: fn(&Block) -> u64| blocks.iter().map(of).fold(0u64, u64::saturating_add);
    let allocated = sum(|b| if b.state.word() == "active_allocated" { b.bytes } else { 0 });
    let active = sum(|b| if b.is_active() { b.bytes } else { 0 });
    let requested = sum(|b| if b.is_active() { b.requested_bytes } else { 0 });
    sink.begin_dict()?;
    sink.key("device")?;
    sink.signed(segment.device.into())?;
    for (key, value) in [
        ("address", segment.address),
        ("total_size", segment.total_bytes),
        ("allocated_size", allocated),
        ("active_size", active),
        ("requested_size", requested),
        ("stream", segment.stream),
    ] {
        sink.key(key)?;
        sink.number(value)?;
    }
    sink.key("segment_type")?;
    sink.text(snapshot, segment.pool)?;
    sink.key("segment_pool_id")?;
    sink.pair(segment.pool_id)?;
    sink.key("is_expandable")?;
    sink.flag(segment.is_expandable)?;
    sink.key("frames")?;
    sink.stack(snapshot, segment.stack)?;
    sink.key("blocks")?;
    sink.begin_list()?;
    for block in blocks {
        write_block(snapshot, block, sink)?;
    }
    sink.end_list()?;
    sink.end_dict()
}

fn write_block(snapshot: &Snapshot, block: &Block, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_dict()?;
    for (key, value) in [
        ("address", block.address),
        ("size", block.bytes),
        ("requested_size", block.requested_bytes),
    ] {
        sink.key(key)?;
        sink.number(value)?;
    }
    sink.key("state")?;
    sink.word(block.state.word())?;
    sink.key("frames")?;
    sink.stack(snapshot, block.stack)?;
    if block.kind != Kind::Unknown {
        sink.key("category")?;
        sink.word(block.kind.category())?;
    }
    if let Some(step) = block.step {
        sink.key("step")?;
        sink.number(step)?;
    }
    sink.end_dict()
}

fn write_trace(snapshot: &Snapshot, device: i32, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_list()?;
    for row in snapshot.rows_of(device) {
        write_event(snapshot, row, sink)?;
    }
    sink.end_list()
}

fn write_event(snapshot: &Snapshot, row: usize, sink: &mut impl Sink) -> io::Result<()> {
    let event = snapshot.events.get(row);
    sink.begin_dict()?;
    sink.key("action")?;
    sink.word(event.action.word())?;
    sink.key(if event.action == Action::Oom { "device_free" } else { "addr" })?;
    sink.number(event.addr)?;
    sink.key("size")?;
    sink.number(event.size)?;
    sink.key("stream")?;
    sink.number(snapshot.events.streams.get(event.stream as usize).copied().unwrap_or(0))?;
    sink.key("time_us")?;
    sink.number(event.time_us)?;
    sink.key("compile_context")?;
    match snapshot.events.compile_context(row) {
        Some(text) => sink.text(snapshot, text)?,
        None => sink.word("N/A")?,
    }
    sink.key("user_metadata")?;
    sink.text(snapshot, snapshot.events.user_metadata(row).unwrap_or_default())?;
    if snapshot.events.pool_id(row) != (0, 0) {
        sink.key("pool_id")?;
        sink.pair(snapshot.events.pool_id(row))?;
    }
    sink.key("frames")?;
    sink.stack(snapshot, event.stack)?;
    if let Some(stack) = snapshot.events.forward_stack(row) {
        sink.key("forward_frames")?;
        sink.stack(snapshot, stack)?;
    }
    if event.kind != Kind::Unknown {
        sink.key("category")?;
        sink.word(event.kind.category())?;
    }
    sink.end_dict()
}

/// The settings that readers look at; the rest of PyTorch's list says nothing about memory.
fn write_settings(snapshot: &Snapshot, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_dict()?;
    // PyTorch's viewer looks this one up.
    let conf = snapshot.settings.iter().find(|(key, _)| key == "PYTORCH_CUDA_ALLOC_CONF");
    sink.key("PYTORCH_CUDA_ALLOC_CONF")?;
    sink.word(conf.map_or("", |(_, value)| value))?;
    let on = |name: &str| snapshot.settings.iter().any(|(k, v)| k == name && v == "true");
    sink.key("expandable_segments")?;
    sink.flag(on("expandable_segments"))?;
    sink.end_dict()
}

fn write_annotations(snapshot: &Snapshot, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_list()?;
    for annotation in &snapshot.annotations {
        sink.begin_dict()?;
        sink.key("name")?;
        sink.text(snapshot, annotation.name)?;
        sink.key("stage")?;
        sink.word(if annotation.is_start { "START" } else { "END" })?;
        sink.key("device")?;
        sink.signed(annotation.device.into())?;
        sink.key("time_us")?;
        sink.number(annotation.time_us)?;
        sink.end_dict()?;
    }
    sink.end_list()
}

fn write_plimsoll(snapshot: &Snapshot, sink: &mut impl Sink) -> io::Result<()> {
    sink.begin_dict()?;
    sink.key("devices")?;
    sink.begin_list()?;
    for name in &snapshot.writer.device_names {
        sink.begin_dict()?;
        sink.key("name")?;
        sink.word(name)?;
        sink.end_dict()?;
    }
    sink.end_list()?;
    sink.end_dict()
}
