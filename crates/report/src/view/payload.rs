//! What the page is given: a small JSON object that describes the snapshot, and columns. The page
//! of a small file gets every allocation; a page that talks to a server gets only the tables
//! (texts, frames, stacks, sites, times) and asks for the rest.

use serde_json::{Value, json};

use super::container::Container;
use super::scene::{DeviceScene, Scene};
use crate::analysis::{ALIVE, reserved_changes};
use crate::events::Action;
use crate::kind::Kind;
use crate::stacks::{FrameId, StackId};
use crate::strings::TextId;

/// Times are kept for this many positions at most; the page draws straight lines between.
const MOST_TIMES: u32 = 1 << 15;
/// Changes of the reserved bytes that are drawn one by one.
const MOST_RESERVED: usize = 1 << 14;
/// Steps that are marked in the picture; with more, none is, as they could not be told apart.
const MOST_STEPS: usize = 2000;

/// The snapshot in a few words and numbers.
pub(crate) fn meta(scene: &Scene<'_>, title: &str, is_served: bool) -> Value {
    let devices: Vec<Value> = scene.devices.iter().map(|device| describe(scene, device)).collect();
    json!({
        "title": title,
        "format": scene.snapshot.writer.format,
        "served": is_served,
        "kinds": Kind::ALL.map(|kind| kind.to_string()),
        "devices": devices,
        "findings": scene.marks,
        "settings": scene.snapshot.settings,
    })
}

fn describe(scene: &Scene<'_>, device: &DeviceScene<'_>) -> Value {
    let (lives, analysis) = (device.lives, device.analysis);
    let events = &scene.snapshot.events;
    let ooms = lives.rows.clone().enumerate().filter(|(_, row)| events.action[*row] == Action::Oom);
    let ooms: Vec<Value> =
        ooms.map(|(index, row)| json!({ "at": index + 1, "bytes": events.size[row] })).collect();
    let steps = analysis.steps.first().map(|steps| steps.bounds.as_slice()).unwrap_or_default();
    let reserved = &analysis.reserved;
    json!({
        "device": device.device,
        "name": scene.snapshot.device_name(device.device),
        "last": lives.last_position(),
        "lives": lives.len(),
        "in_trace": lives.in_trace,
        "height": device.height,
        "peak": { "at": lives.peak.position, "bytes": lives.peak.bytes },
        "end_bytes": device.bytes_at_end(),
        "reserved_peak": { "at": reserved.peak.position, "bytes": reserved.peak.bytes },
        "reserved_end_bytes": reserved.end_bytes,
        "top_sites": device.top_sites,
        "ooms": ooms,
        "steps": if steps.len() <= MOST_STEPS { steps } else { &[] },
        "kinds_inferred": analysis.kinds_inferred,
        "time_step": time_step(device),
    })
}

fn time_step(device: &DeviceScene<'_>) -> u32 {
    device.lives.last_position().div_ceil(MOST_TIMES).max(1)
}

/// Texts, frames, stacks, sites and times.
pub(crate) fn tables(scene: &Scene<'_>) -> Container {
    let mut columns = Container::default();
    let snapshot = scene.snapshot;
    let (strings, stacks, sites) = (&snapshot.strings, &snapshot.stacks, scene.sites);
    let texts = || (0..strings.len() as u32).map(|id| strings.get(TextId(id)));
    let mut end = 0;
    let ends: Vec<u32> = texts()
        .map(|text| {
            end += text.len() as u32;
            end
        })
        .collect();
    columns.u8("text", texts().collect::<String>().as_bytes());
    columns.u32("text_ends", ends.into_iter());
    let frames = || (0..stacks.frame_count()).map(|id| stacks.frame(FrameId(id as u32)));
    columns.u32("frame_function", frames().map(|frame| frame.function.0));
    columns.u32("frame_file", frames().map(|frame| frame.file.0));
    columns.u32("frame_line", frames().map(|frame| frame.line));
    let stack_ids = || (0..stacks.len()).map(|id| StackId(id as u32));
    let mut end = 0;
    let ends: Vec<u32> = stack_ids()
        .map(|id| {
            end += stacks.frame_ids(id).len() as u32;
            end
        })
        .collect();
    let members: Vec<u32> =
        stack_ids().flat_map(|id| stacks.frame_ids(id)).map(|frame| frame.0).collect();
    columns.u32("stack_ends", ends.into_iter());
    columns.u32("stack_frames", members.into_iter());
    columns.u32("stack_site", stack_ids().map(|id| sites.of_stack(id).0));
    let lines = || (0..sites.len()).map(|id| sites.frame(crate::SiteId(id as u32)));
    columns.u32("site_function", lines().map(|frame| frame.function.0));
    columns.u32("site_file", lines().map(|frame| frame.file.0));
    columns.u32("site_line", lines().map(|frame| frame.line));
    for (index, device) in scene.devices.iter().enumerate() {
        site_columns(device, index, &mut columns);
        reserved_columns(device, index, &mut columns);
        let step = time_step(device);
        let samples = (device.lives.last_position() / step + 1) as usize;
        let times = (0..samples).map(|at| device.time_us(at as u32 * step) as f64);
        columns.f64(&format!("d{index}.times"), times);
    }
    columns
}

/// How much each site holds at the device's peak, and how often it allocated.
fn site_columns(device: &DeviceScene<'_>, index: usize, columns: &mut Container) {
    let (lives, sites) = (device.lives, device.sites);
    let mut counts = vec![0u32; sites.len()];
    for stack in &lives.stack {
        counts[sites.of_stack(*stack).0 as usize] += 1;
    }
    let mut bytes = vec![0u64; sites.len()];
    for (site, amount) in &device.analysis.at_peak.by_site {
        bytes[site.0 as usize] = amount.bytes;
    }
    columns.u32(&format!("d{index}.site_count"), counts.into_iter());
    columns.f64(&format!("d{index}.site_peak"), bytes.into_iter().map(|bytes| bytes as f64));
}

/// Bytes from the driver after each change. Of too many changes neighbours are joined; the highest
/// of them is kept.
fn reserved_columns(device: &DeviceScene<'_>, index: usize, columns: &mut Container) {
    let mut now = i128::from(device.analysis.reserved.start_bytes);
    let mut points = vec![(0, now.max(0) as f64)];
    for (position, change) in reserved_changes(device.snapshot, device.device) {
        now += change;
        points.push((position, now.max(0) as f64));
    }
    let joined = points.len().div_ceil(MOST_RESERVED).max(1);
    let groups: Vec<(u32, f64)> = points
        .chunks(joined)
        .map(|group| (group[0].0, group.iter().fold(0.0, |most, point| f64::max(most, point.1))))
        .collect();
    columns.u32(&format!("d{index}.reserved_at"), groups.iter().map(|group| group.0));
    columns.f64(&format!("d{index}.reserved_bytes"), groups.iter().map(|group| group.1));
}

/// Every allocation and every range from the driver, for a page that answers itself.
pub(crate) fn add_lives(scene: &Scene<'_>, columns: &mut Container) {
    for (index, device) in scene.devices.iter().enumerate() {
        let lives = device.lives;
        let name = |column: &str| format!("d{index}.{column}");
        // By birth, as the page looks for them; numbers of allocations are kept in `life`.
        let order: Vec<usize> = (lives.in_trace..lives.len()).chain(0..lives.in_trace).collect();
        let last = lives.last_position();
        let each = || order.iter().copied();
        columns.u32(&name("life"), each().map(|life| life as u32));
        columns.u32(&name("born"), each().map(|life| lives.born[life]));
        columns.u32(&name("died"), each().map(|life| lives.died[life].min(last + 1)));
        columns.f64(&name("bytes"), each().map(|life| lives.bytes[life] as f64));
        columns.f64(&name("offset"), each().map(|life| device.offset[life] as f64));
        columns.u64(&name("addr"), each().map(|life| lives.addr[life]));
        columns.u32(&name("stack"), each().map(|life| lives.stack[life].0));
        let kinds: Vec<u8> = each().map(|life| lives.kind[life].index() as u8).collect();
        columns.u8(&name("kind"), &kinds);
        let pieces = || device.pieces.iter();
        columns.u64(&name("piece_addr"), pieces().map(|piece| piece.addr));
        columns.f64(&name("piece_bytes"), pieces().map(|piece| piece.bytes as f64));
        columns.u32(&name("piece_born"), pieces().map(|piece| piece.born));
        columns.u32(&name("piece_died"), pieces().map(|piece| piece.died));
        let streams = &scene.snapshot.events.streams;
        let stream = |place: u32| match place {
            ALIVE => u64::MAX,
            place => streams.get(place as usize).copied().unwrap_or(u64::MAX),
        };
        columns.u64(&name("piece_stream"), pieces().map(|piece| stream(piece.stream)));
        let growing: Vec<u8> = pieces().map(|piece| u8::from(piece.is_expandable)).collect();
        columns.u8(&name("piece_expandable"), &growing);
    }
}
