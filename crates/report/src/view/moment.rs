//! What is there at one position: segments with their blocks, and what is alive by stack. Blocks
//! too small to see are joined with their neighbours, so that the answer is bounded by the screen.

use std::collections::HashMap;

use serde::Serialize;

use super::pieces::Piece;
use super::scene::DeviceScene;
use crate::analysis::ALIVE;

/// Segments in an answer: the largest.
const MOST_SEGMENTS: usize = 256;
/// A block narrower than its segment by this factor is joined with its neighbours.
const FINEST: u64 = 512;
/// Stacks in an answer: the largest.
const MOST_STACKS: usize = 4096;

/// The state at a position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MomentAnswer {
    /// The position.
    pub at: u32,
    /// Requested bytes of everything alive.
    pub live_bytes: u64,
    /// How many allocations are alive.
    pub live_count: u64,
    /// Bytes held from the driver.
    pub reserved_bytes: u64,
    /// Bytes in use, rounded as the allocator does, in all segments, listed or not.
    pub used_bytes: u64,
    /// Segments, the largest first.
    pub segments: Vec<SegmentNow>,
    /// All segments, listed or not.
    pub segment_count: usize,
    /// What is alive by stack, the largest first.
    pub stacks: Vec<StackNow>,
    /// Bytes by kind, in the order of `Kind::ALL`.
    pub kinds: Vec<u64>,
}

/// A segment at a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentNow {
    /// Where it starts, in hexadecimal.
    pub address: String,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of it in use, rounded as the allocator does.
    pub used_bytes: u64,
    /// How many blocks are in use.
    pub used_count: usize,
    /// The stream as the file names it; none if no event says.
    pub stream: Option<u64>,
    /// Whether it grows by pages.
    pub is_expandable: bool,
    /// What is in use, from its start on; the rest is free.
    pub runs: Vec<BlockRun>,
}

/// A block in use, or neighbours that are too small to show one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockRun {
    /// From the segment's start, in bytes.
    pub start: u64,
    /// Its extent in bytes, small gaps between neighbours included.
    pub bytes: u64,
    /// Bytes of it in use.
    pub used_bytes: u64,
    /// How many blocks.
    pub count: u32,
    /// The number of the (first) allocation on this device.
    pub life: u32,
    /// Its kind, a place in `Kind::ALL`.
    pub kind: u8,
}

/// What is alive of one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StackNow {
    /// The stack's number.
    pub stack: u32,
    /// Requested bytes.
    pub bytes: u64,
    /// How many allocations.
    pub count: u64,
}

pub(crate) fn moment(scene: &DeviceScene<'_>, at: u32) -> MomentAnswer {
    let at = at.min(scene.lives.last_position());
    let mut answer =
        MomentAnswer { at, kinds: vec![0; crate::Kind::ALL.len()], ..Default::default() };
    let lives = scene.lives;
    let mut alive: Vec<u32> = scene.classes.alive(lives, at).collect();
    let mut stacks: HashMap<u32, StackNow> = HashMap::new();
    for life in alive.iter().map(|life| *life as usize) {
        let (stack, bytes) = (lives.stack[life].0, lives.bytes[life]);
        let entry = stacks.entry(stack).or_insert(StackNow { stack, bytes: 0, count: 0 });
        entry.bytes = entry.bytes.saturating_add(bytes);
        entry.count += 1;
        answer.live_bytes = answer.live_bytes.saturating_add(bytes);
        let kind = &mut answer.kinds[lives.kind[life].index()];
        *kind = kind.saturating_add(bytes);
    }
    answer.live_count = alive.len() as u64;
    answer.stacks = stacks.into_values().collect();
    answer.stacks.sort_unstable_by_key(|s| (std::cmp::Reverse(s.bytes), s.stack));
    answer.stacks.truncate(MOST_STACKS);
    alive.sort_unstable_by_key(|life| (lives.addr[*life as usize], *life));
    let held = joined(scene.pieces.iter().filter(|p| p.born <= at && at < p.died));
    answer.segment_count = held.len();
    answer.reserved_bytes = held.iter().fold(0, |sum, piece| piece.bytes.saturating_add(sum));
    answer.segments = held.iter().map(|piece| segment(scene, piece, &alive)).collect();
    answer.used_bytes =
        answer.segments.iter().fold(0, |sum, segment| segment.used_bytes.saturating_add(sum));
    // A stable sort: equals stay in order of address.
    answer.segments.sort_by_key(|segment| std::cmp::Reverse(segment.bytes));
    answer.segments.truncate(MOST_SEGMENTS);
    answer
}

/// Pages side by side are one segment. Pieces come by address.
fn joined<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Vec<Piece> {
    let mut held: Vec<Piece> = Vec::new();
    for piece in pieces {
        match held.last_mut() {
            Some(last)
                if last.is_expandable
                    && piece.is_expandable
                    && last.stream == piece.stream
                    && last.addr + last.bytes == piece.addr =>
            {
                last.bytes += piece.bytes;
            }
            _ => held.push(*piece),
        }
    }
    held
}

fn segment(scene: &DeviceScene<'_>, piece: &Piece, alive: &[u32]) -> SegmentNow {
    let lives = scene.lives;
    let end = piece.addr + piece.bytes;
    let first = alive.partition_point(|life| lives.addr[*life as usize] < piece.addr);
    let last = alive.partition_point(|life| lives.addr[*life as usize] < end);
    let mut now = SegmentNow {
        address: format!("{:x}", piece.addr),
        bytes: piece.bytes,
        used_bytes: 0,
        used_count: last - first,
        stream: (piece.stream != ALIVE)
            .then(|| scene.snapshot.events.streams.get(piece.stream as usize).copied())
            .flatten(),
        is_expandable: piece.is_expandable,
        runs: Vec::new(),
    };
    let finest = piece.bytes / FINEST;
    for at in first..last {
        let life = alive[at];
        let addr = lives.addr[life as usize];
        let next = alive.get(at + 1).map_or(end, |next| lives.addr[*next as usize].min(end));
        // Addresses that overlap, in a broken file, are cut at the next one.
        let bytes = lives.end(life as usize).min(next) - addr;
        let start = addr - piece.addr;
        now.used_bytes += bytes;
        match now.runs.last_mut() {
            Some(run)
                if bytes < finest
                    && run.bytes < finest
                    && start - (run.start + run.bytes) < finest / 2 =>
            {
                run.bytes = start + bytes - run.start;
                run.used_bytes += bytes;
                run.count += 1;
            }
            _ => {
                let kind = lives.kind[life as usize].index() as u8;
                now.runs.push(BlockRun { start, bytes, used_bytes: bytes, count: 1, life, kind });
            }
        }
    }
    now
}
