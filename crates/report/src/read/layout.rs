//! From the one value of a file to a snapshot: finds the parts of the layout by their keys, checks
//! that segments and blocks lie where they say, and hands the columns over. What each key means is
//! in `docs/snapshot-format.md`.

use std::ops::Range;

use super::heap::{Fault, Heap, Object, Value};
use super::keys;
use super::rows::short;
use crate::events::Events;
use crate::segments::{Block, Segment};
use crate::snapshot::{Annotation, Snapshot, Trace, Writer};
use crate::stacks::StackId;
use crate::strings::TextId;

/// The snapshot of a heap whose file's value is `root`.
pub(super) fn snapshot(mut heap: Heap, root: Value) -> Result<Snapshot, Fault> {
    let mut parts = Parts::default();
    if heap.list(root).is_some_and(|items| !items.is_empty()) {
        // `torch.cuda.memory_snapshot()` returns the segments alone.
        parts.read_segments(&mut heap, root, "segments")?;
    } else {
        parts.read_root(&mut heap, root)?;
    }
    check_segments(&parts.segments, &parts.blocks)?;
    let (events, traces) = gather(std::mem::take(&mut heap.events), parts.traces)?;
    Ok(Snapshot {
        strings: heap.strings,
        stacks: heap.stacks,
        segments: parts.segments,
        blocks: parts.blocks,
        events,
        traces,
        annotations: parts.annotations,
        settings: parts.settings,
        writer: parts.writer,
    })
}

#[derive(Default)]
struct Parts {
    segments: Vec<Segment>,
    blocks: Vec<Block>,
    traces: Vec<(i32, Vec<Range<u32>>)>,
    annotations: Vec<Annotation>,
    settings: Vec<(String, String)>,
    writer: Writer,
}

impl Parts {
    fn read_root(&mut self, heap: &mut Heap, root: Value) -> Result<(), Fault> {
        let not_one = "this is no memory snapshot: it has neither `segments` nor `device_traces`";
        let Value::Object(at) = root else { return Err(not_one.into()) };
        let (segments, traces) =
            (heap.field(at, keys::SEGMENTS), heap.field(at, keys::DEVICE_TRACES));
        if segments.is_none() && traces.is_none() {
            return Err(not_one.into());
        }
        if let Some(segments) = segments {
            self.read_segments(heap, segments, "segments")?;
        }
        if let Some(traces) = traces {
            let traces =
                heap.list(traces).ok_or("`device_traces` is not a list of lists")?.to_vec();
            for (device, trace) in traces.into_iter().enumerate() {
                self.read_trace(heap, trace, device as i32)?;
            }
        }
        if let Some(segments) = heap.field(at, keys::HOST_SEGMENTS) {
            self.read_segments(heap, segments, "host_segments")?;
        }
        if let Some(trace) = heap.field(at, keys::HOST_TRACES) {
            self.read_trace(heap, trace, -1)?;
        }
        if let Some(list) = heap.field(at, keys::EXTERNAL_ANNOTATIONS) {
            self.read_annotations(heap, list)?;
        }
        if let Some(Value::Object(settings)) = heap.field(at, keys::ALLOCATOR_SETTINGS) {
            read_settings(heap, settings, &mut self.settings);
        }
        if let Some(Value::Object(about)) = heap.field(at, keys::PLIMSOLL) {
            self.writer.is_plimsoll = true;
            let devices = heap.field(about, keys::DEVICES).and_then(|list| heap.list(list));
            for device in devices.unwrap_or_default() {
                let Value::Object(device) = *device else { continue };
                let name = heap.field(device, keys::DEVICE).or(heap.field(device, keys::NAME));
                let name = heap.text(name.unwrap_or(Value::None), "device")?.to_string();
                self.writer.device_names.push(name);
            }
        }
        Ok(())
    }

    fn read_trace(&mut self, heap: &Heap, trace: Value, device: i32) -> Result<(), Fault> {
        let Value::Object(at) = trace else { return Err("a trace is not a list".into()) };
        let ranges = match &heap.objects[at as usize] {
            Object::Events(ranges) => (**ranges).clone(),
            Object::EmptyList => Vec::new(),
            _ => return Err("a trace is not a list of events".into()),
        };
        self.traces.push((device, ranges));
        Ok(())
    }

    fn read_segments(&mut self, heap: &mut Heap, list: Value, name: &str) -> Result<(), Fault> {
        let list = heap.list(list).ok_or_else(|| format!("`{name}` is not a list"))?.to_vec();
        for (index, segment) in list.into_iter().enumerate() {
            let read = match segment {
                Value::Object(at) => self.read_segment(heap, at, name == "host_segments"),
                _ => Err("it is not a dictionary".into()),
            };
            read.map_err(|fault| format!("`{name}` {index}: {fault}"))?;
        }
        Ok(())
    }

    fn read_segment(&mut self, heap: &mut Heap, at: u32, host: bool) -> Result<(), Fault> {
        let number = |key, name| match heap.field(at, key) {
            Some(value) => heap.number(value, name),
            None => Err(format!("`{name}` is missing")),
        };
        let (address, total_bytes) =
            (number(keys::ADDRESS, "address")?, number(keys::TOTAL_SIZE, "total_size")?);
        let device = match heap.field(at, keys::DEVICE) {
            Some(Value::Int(device)) => {
                i32::try_from(device).map_err(|_| "`device` is too large")?
            }
            _ => 0,
        };
        let stream = heap.field(at, keys::STREAM).map_or(Ok(0), |v| heap.number(v, "stream"))?;
        let pool = heap.field(at, keys::SEGMENT_TYPE);
        let pool = heap.text_id(pool.unwrap_or(Value::None), "segment_type")?;
        let pool_id = heap.field(at, keys::SEGMENT_POOL_ID).map_or(Ok((0, 0)), |v| heap.pair(v))?;
        let is_expandable = heap.field(at, keys::IS_EXPANDABLE) == Some(Value::Flag(true));
        let stack = match heap.field(at, keys::FRAMES) {
            Some(frames) => heap.stack_of(frames)?,
            None => StackId::EMPTY,
        };
        let first = self.blocks.len();
        let blocks = heap.field(at, keys::BLOCKS).and_then(|list| heap.list(list));
        let mut next = address;
        for block in blocks.ok_or("`blocks` is not a list")? {
            let row = match block {
                Value::Object(at) => match heap.objects[*at as usize] {
                    Object::Block(row) => row,
                    _ => return Err("`blocks` holds something that is no block".into()),
                },
                _ => return Err("`blocks` holds something that is no block".into()),
            };
            if self.blocks.len() >= heap.blocks.len() {
                return Err("segments share their blocks".into());
            }
            let mut block = heap.blocks[row as usize];
            if block.address == u64::MAX {
                block.address = next;
            }
            next = block.address.saturating_add(block.bytes);
            self.blocks.push(block);
        }
        self.segments.push(Segment {
            device: if host { -1 } else { device },
            address,
            total_bytes,
            stream,
            pool,
            pool_id,
            is_expandable,
            stack,
            blocks: first..self.blocks.len(),
        });
        Ok(())
    }

    fn read_annotations(&mut self, heap: &Heap, list: Value) -> Result<(), Fault> {
        let list = heap.list(list).ok_or("`external_annotations` is not a list")?;
        for item in list {
            let Value::Object(at) = *item else { continue };
            let (Some(name), Some(stage)) =
                (heap.field(at, keys::NAME), heap.field(at, keys::STAGE))
            else {
                continue;
            };
            let time = heap.field(at, keys::TIME_US).unwrap_or(Value::Int(0));
            self.annotations.push(Annotation {
                name: heap.text_id(name, "name")?,
                is_start: heap.text(stage, "stage")? == "START",
                device: match heap.field(at, keys::DEVICE) {
                    Some(Value::Int(device)) => i32::try_from(device).unwrap_or(0),
                    _ => 0,
                },
                time_us: heap.number(time, "time_us")?,
            });
        }
        Ok(())
    }
}

/// Settings as texts; a dictionary inside them is one level deep.
fn read_settings(heap: &Heap, at: u32, settings: &mut Vec<(String, String)>) {
    let Object::Dict(items) = &heap.objects[at as usize] else { return };
    for item in items.chunks_exact(2) {
        let key = setting(heap, item[0]);
        if let Value::Object(inner) = item[1]
            && let Object::Dict(inner) = &heap.objects[inner as usize]
        {
            for item in inner.chunks_exact(2) {
                settings
                    .push((format!("{key}.{}", setting(heap, item[0])), setting(heap, item[1])));
            }
        } else {
            settings.push((key, setting(heap, item[1])));
        }
    }
}

fn setting(heap: &Heap, value: Value) -> String {
    match value {
        Value::None => "none".to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Wide(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(TextId(text)) => short(heap.strings.get(TextId(text))),
        Value::Pair(at) => format!("{:?}", heap.pairs[at as usize]),
        Value::Huge | Value::Object(_) => "...".to_string(),
    }
}

/// Segments must not overlap, and blocks must lie in order inside theirs.
fn check_segments(segments: &[Segment], blocks: &[Block]) -> Result<(), Fault> {
    for (index, segment) in segments.iter().enumerate() {
        let end = segment.address.checked_add(segment.total_bytes);
        let end = end.ok_or_else(|| format!("segment {index} reaches past the address space"))?;
        let mut next = segment.address;
        for block in &blocks[segment.blocks.clone()] {
            let block_end = block.address.checked_add(block.bytes);
            match block_end {
                Some(block_end) if block.address >= next && block_end <= end => next = block_end,
                Some(_) if block.address < next => {
                    return Err(format!(
                        "segment {index}: the block at {:#x} overlaps the one before it",
                        block.address
                    ));
                }
                _ => {
                    return Err(format!(
                        "segment {index}: the block at {:#x} reaches out of it",
                        block.address
                    ));
                }
            }
        }
    }
    let mut order: Vec<&Segment> = segments.iter().collect();
    order.sort_by_key(|segment| (segment.device, segment.address));
    for pair in order.windows(2) {
        if pair[0].device == pair[1].device
            && pair[0].address + pair[0].total_bytes > pair[1].address
        {
            return Err(format!(
                "the segments at {:#x} and {:#x} overlap",
                pair[0].address, pair[1].address
            ));
        }
    }
    Ok(())
}

/// Brings the rows of each trace together. Files keep them so already, except forged or edited
/// ones.
fn gather(
    events: Events,
    traces: Vec<(i32, Vec<Range<u32>>)>,
) -> Result<(Events, Vec<Trace>), Fault> {
    let total: u64 = traces.iter().flat_map(|(_, r)| r).map(|r| u64::from(r.end - r.start)).sum();
    if total > events.len() as u64 {
        return Err("traces share their events".into());
    }
    let together = traces.iter().all(|(_, ranges)| ranges.len() <= 1);
    if together {
        let rows = |ranges: &[Range<u32>]| {
            ranges.first().map_or(0..0, |r| r.start as usize..r.end as usize)
        };
        let traces =
            traces.iter().map(|(device, r)| Trace { device: *device, rows: rows(r) }).collect();
        return Ok((events, traces));
    }
    let mut gathered = Events { streams: events.streams.clone(), ..Events::default() };
    let mut new_traces = Vec::new();
    for (device, ranges) in traces {
        let start = gathered.len();
        for row in ranges.into_iter().flatten().map(|row| row as usize) {
            let to = gathered.len() as u32;
            gathered.push(events.get(row));
            let extras = &mut gathered.extras;
            extras.compile_context.extend(events.compile_context(row).map(|text| (to, text)));
            extras.user_metadata.extend(events.user_metadata(row).map(|text| (to, text)));
            extras.forward_stack.extend(events.forward_stack(row).map(|stack| (to, stack)));
            if events.pool_id(row) != (0, 0) {
                extras.pool_id.push((to, events.pool_id(row)));
            }
        }
        new_traces.push(Trace { device, rows: start..gathered.len() });
    }
    Ok((gathered, new_traces))
}
