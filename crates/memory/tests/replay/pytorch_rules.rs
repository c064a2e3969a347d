//! PyTorch's allocator rules as a reference, written as plainly as they can be: a list of segments,
//! each a list of blocks, searched from end to end. It shares no code with the allocator under
//! test. The rules are those of PyTorch 2.13 and later with default options: 512-byte rounding, a
//! small pool up to 1 MiB in 2 MiB segments, 20 MiB segments up to 10 MiB, 2 MiB rounding above,
//! best fit in the order (size, birth of the segment, address), split when 512 bytes (small) or
//! more than 1 MiB (large) remain, merge with free neighbours. Nothing is ever given back, as
//! without a limit.

const MIB: usize = 1 << 20;

#[derive(Debug)]
struct Piece {
    bytes: usize,
    /// The allocation in it, if it is in use.
    holds: Option<usize>,
}

#[derive(Debug)]
struct Segment {
    small: bool,
    stream: u64,
    pieces: Vec<Piece>,
}

/// The state of PyTorch's allocator on one device.
#[derive(Debug, Default)]
pub(crate) struct PytorchRules {
    /// In order of birth.
    segments: Vec<Segment>,
    pub(crate) reserved_bytes: usize,
    pub(crate) reserved_bytes_peak: usize,
    pub(crate) allocated_bytes: usize,
}

pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.max(1).div_ceil(512) * 512
}

fn segment_bytes(rounded: usize) -> usize {
    if rounded <= MIB {
        2 * MIB
    } else if rounded < 10 * MIB {
        20 * MIB
    } else {
        rounded.div_ceil(2 * MIB) * 2 * MIB
    }
}

impl PytorchRules {
    /// How many segments were ever reserved; none is given back.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Allocates; returns the size of the segment that had to be reserved for it, if any.
    pub(crate) fn allocate(&mut self, id: usize, bytes: usize, stream: u64) -> Option<usize> {
        let wanted = rounded(bytes);
        let small = wanted <= MIB;
        self.allocated_bytes += wanted;
        let mut best: Option<(usize, usize, usize)> = None;
        for (birth, segment) in self.segments.iter().enumerate() {
            if segment.small != small || segment.stream != stream {
                continue;
            }
            for (place, piece) in segment.pieces.iter().enumerate() {
                let candidate = (piece.bytes, birth, place);
                let fits = piece.holds.is_none() && piece.bytes >= wanted;
                if fits && best.is_none_or(|best| candidate < best) {
                    best = Some(candidate);
                }
            }
        }
        let reserved = best.is_none().then(|| segment_bytes(wanted));
        if let Some(bytes) = reserved {
            self.reserved_bytes += bytes;
            self.reserved_bytes_peak = self.reserved_bytes_peak.max(self.reserved_bytes);
            self.segments.push(Segment {
                small,
                stream,
                pieces: vec![Piece { bytes, holds: None }],
            });
        }
        let (_, birth, place) = best.unwrap_or((0, self.segments.len() - 1, 0));
        let pieces = &mut self.segments[birth].pieces;
        let rest = pieces[place].bytes - wanted;
        let split = if small { rest >= 512 } else { rest > MIB };
        if split {
            pieces[place].bytes = wanted;
            pieces.insert(place + 1, Piece { bytes: rest, holds: None });
        }
        pieces[place].holds = Some(id);
        reserved
    }

    pub(crate) fn free(&mut self, id: usize, bytes: usize) {
        self.allocated_bytes -= rounded(bytes);
        for segment in &mut self.segments {
            let Some(place) = segment.pieces.iter().position(|p| p.holds == Some(id)) else {
                continue;
            };
            segment.pieces[place].holds = None;
            if segment.pieces.get(place + 1).is_some_and(|next| next.holds.is_none()) {
                segment.pieces[place].bytes += segment.pieces.remove(place + 1).bytes;
            }
            if place > 0 && segment.pieces[place - 1].holds.is_none() {
                segment.pieces[place - 1].bytes += segment.pieces.remove(place).bytes;
            }
            return;
        }
        panic!("allocation {id} is not live");
    }
}
