//! The lives of allocations: each from its birth to its death, found by pairing the events of one
//! device. What the trace frees but never allocated, and what the final segments hold but the trace
//! does not explain, was there before the trace began.
//!
//! Moments are positions: position `p` is the state after `p` events of the device's trace. A life
//! is alive at `p` if `born <= p < died`.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use crate::events::Action;
use crate::kind::Kind;
use crate::snapshot::Snapshot;
use crate::stacks::StackId;

/// A death that the trace does not show: alive when the snapshot was taken.
pub const ALIVE: u32 = u32::MAX;

/// The allocations of one device as columns: first those of the trace in order of birth, then those
/// from before it.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// The rows of [`Snapshot::events`] that were paired.
    pub rows: Range<usize>,
    /// Where each lies.
    pub addr: Vec<u64>,
    /// Requested bytes.
    pub bytes: Vec<u64>,
    /// The position at which each appears; 0 if it was there before the trace.
    pub born: Vec<u32>,
    /// The position at which each is gone, or [`ALIVE`].
    pub died: Vec<u32>,
    /// Who asked.
    pub stack: Vec<StackId>,
    /// What for: from the file, or [`Kind::Unknown`] until kinds are inferred.
    pub kind: Vec<Kind>,
    /// How many were born in the trace; the rest was there before.
    pub in_trace: usize,
    /// Bytes that were there before the trace.
    pub bytes_before: u64,
    /// The most bytes alive at once, and the first position at which they were.
    pub peak: Peak,
}

/// The allocator's granule.
const ROUNDING: u64 = 512;

/// A highest point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes at it.
    pub bytes: u64,
    /// Where it is.
    pub position: u32,
}

impl Lives {
    /// Pairs the events of a device.
    pub fn of(snapshot: &Snapshot, device: i32) -> Lives {
        let rows = snapshot.rows_of(device);
        let mut lives = Lives { rows: rows.clone(), ..Lives::default() };
        let mut before = Vec::new();
        let mut at = Addresses::new();
        let events = &snapshot.events;
        // Recorders can be told to skip actions. Without completions, a request is the end.
        let completes = events.action[rows.clone()].contains(&Action::FreeCompleted);
        let end = if completes { Action::FreeCompleted } else { Action::FreeRequested };
        // Live bytes relative to those before the trace, which are known only at its end.
        // Wide, because a forged file can add up to more than 64 bits.
        let (mut now, mut highest) = (0i128, (0i128, 0u32));
        for (index, row) in rows.enumerate() {
            let position = index as u32 + 1;
            let action = events.action[row];
            if action == Action::Alloc {
                if let Some(old) = at.insert(events.addr[row], lives.addr.len() as u32) {
                    // Two allocations at one place: the free between them was not recorded.
                    lives.died[old as usize] = position;
                    now -= i128::from(lives.bytes[old as usize]);
                }
                lives.push(events.addr[row], events.size[row], position, ALIVE);
                lives.stack.push(events.stack[row]);
                lives.kind.push(events.kind[row]);
                now += i128::from(events.size[row]);
                if now > highest.0 {
                    highest = (now, position);
                }
            } else if action == end {
                let bytes = match at.remove(events.addr[row]) {
                    Some(life) => {
                        lives.died[life as usize] = position;
                        lives.bytes[life as usize]
                    }
                    None => {
                        before.push((row, position));
                        events.size[row]
                    }
                };
                now -= i128::from(bytes);
            }
        }
        lives.in_trace = lives.addr.len();
        for (row, position) in before {
            // What a free site says about the allocation is only its size; its stack is that of the
            // free.
            lives.push(events.addr[row], events.size[row], 0, position);
            lives.stack.push(StackId::EMPTY);
            lives.kind.push(events.kind[row]);
        }
        lives.add_blocks(snapshot, device, &at);
        let before = &lives.bytes[lives.in_trace..];
        lives.bytes_before = before.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        lives.peak = Peak {
            // Never below the bytes before the trace: `highest` starts there.
            bytes: u64::try_from(i128::from(lives.bytes_before) + highest.0).unwrap_or(u64::MAX),
            position: highest.1,
        };
        lives
    }

    fn push(&mut self, addr: u64, bytes: u64, born: u32, died: u32) {
        self.addr.push(addr);
        self.bytes.push(bytes);
        self.born.push(born);
        self.died.push(died);
    }

    /// Blocks in use at the end that no event explains; and kinds that only the blocks know.
    fn add_blocks(&mut self, snapshot: &Snapshot, device: i32, at: &Addresses) {
        for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
            for block in snapshot.blocks_of(segment).iter().filter(|block| block.is_active()) {
                match at.get(block.address) {
                    Some(life) if block.kind != Kind::Unknown => {
                        self.kind[life as usize] = block.kind;
                    }
                    Some(_) => {}
                    None => {
                        self.push(block.address, block.requested_bytes, 0, ALIVE);
                        self.stack.push(block.stack);
                        self.kind.push(block.kind);
                    }
                }
            }
        }
    }

    /// How many lives there are.
    pub fn len(&self) -> usize {
        self.addr.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addr.is_empty()
    }

    /// How many positions follow the first one.
    pub fn last_position(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Whether a life is alive at a position.
    pub fn is_alive(&self, life: usize, position: u32) -> bool {
        self.born[life] <= position && position < self.died[life]
    }

    /// The lives that are alive at a position, in order of birth.
    pub fn alive_at(&self, position: u32) -> impl Iterator<Item = usize> + '_ {
        let born = self.born[..self.in_trace].partition_point(|born| *born <= position);
        (self.in_trace..self.len()).chain(0..born).filter(move |l| self.is_alive(*l, position))
    }

    /// Bytes alive at a position.
    pub fn bytes_at(&self, position: u32) -> u64 {
        self.alive_at(position).fold(0u64, |sum, life| sum.saturating_add(self.bytes[life]))
    }

    /// How many lives of the trace had begun at a position.
    pub fn made_by(&self, position: u32) -> usize {
        self.born[..self.in_trace].partition_point(|born| *born <= position)
    }

    /// Where the memory of a life ends, its size rounded as the allocator rounds it.
    pub fn end(&self, life: usize) -> u64 {
        let bytes = self.bytes[life].max(1);
        let rounded = bytes.checked_next_multiple_of(ROUNDING).unwrap_or(bytes);
        self.addr[life].saturating_add(rounded)
    }

    /// The row of the event by which a life began; none if it was there before.
    pub fn birth_row(&self, life: usize) -> Option<usize> {
        (self.born[life] as usize).checked_sub(1).map(|index| self.rows.start + index)
    }
}

/// Which life is at which address. Addresses are multiples of 512, so they are spread by
/// multiplying; the factor is drawn anew each run, so that no file can be made to collide. Nothing
/// depends on the order inside.
struct Addresses(HashMap<u64, u32, Spread>);

impl Addresses {
    fn new() -> Addresses {
        Addresses(HashMap::with_hasher(Spread(RandomState::new().hash_one(0) | 1)))
    }

    fn insert(&mut self, addr: u64, life: u32) -> Option<u32> {
        self.0.insert(addr, life)
    }

    fn remove(&mut self, addr: u64) -> Option<u32> {
        self.0.remove(&addr)
    }

    fn get(&self, addr: u64) -> Option<u32> {
        self.0.get(&addr).copied()
    }
}

#[derive(Clone, Copy)]
struct Spread(u64);

impl BuildHasher for Spread {
    type Hasher = SpreadHasher;

    fn build_hasher(&self) -> SpreadHasher {
        SpreadHasher { factor: self.0, hash: 0 }
    }
}

struct SpreadHasher {
    factor: u64,
    hash: u64,
}

impl Hasher for SpreadHasher {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.hash ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(value) * u128::from(self.factor);
        self.hash = (product as u64) ^ ((product >> 64) as u64);
    }
}
