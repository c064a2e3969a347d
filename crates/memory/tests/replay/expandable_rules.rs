//! PyTorch's rules for expandable segments as a reference, written as plainly as they can be: for
//! each pool and stream one range of addresses, a list of pieces that are live, free or without
//! memory, searched from end to end. It shares no code with the allocator under test. Pages are
//! 2 MiB in the small pool and 20 MiB in the large one. A block is the best fit by size and
//! address, but as long as the next one could expand to less, that one is taken. Any 512 bytes are
//! split off. Pages are mapped at the first place where free and unmapped neighbours are long
//! enough, and emptying the cache unmaps every page that is wholly free.

use super::pytorch_rules::rounded;

const MIB: usize = 1 << 20;

/// Addresses of a range on a device without an end.
const RANGE: usize = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Live(usize),
    Free,
    Unmapped,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from: usize,
    bytes: usize,
    state: State,
}

#[derive(Debug)]
struct Range {
    small: bool,
    stream: u64,
    pieces: Vec<Piece>,
}

#[derive(Debug, Default)]
pub(crate) struct ExpandableRules {
    ranges: Vec<Range>,
    pub(crate) reserved_bytes: usize,
    pub(crate) reserved_bytes_peak: usize,
    pub(crate) maps: i64,
    pub(crate) unmaps: i64,
}

/// Where an allocation lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) small: bool,
    pub(crate) stream: u64,
    /// From the start of its range.
    pub(crate) offset: usize,
    /// Whether the range is new.
    pub(crate) fresh: bool,
}

impl Range {
    fn page(&self) -> usize {
        if self.small { 2 * MIB } else { 20 * MIB }
    }

    fn expandable(&self, place: usize) -> usize {
        let behind = self.pieces.get(place + 1).filter(|next| next.state == State::Unmapped);
        self.pieces[place].bytes + behind.map_or(0, |next| next.bytes)
    }

    fn best(&self, wanted: usize) -> Option<usize> {
        let free = |piece: &Piece| piece.state == State::Free && piece.bytes >= wanted;
        let mut fits: Vec<usize> =
            (0..self.pieces.len()).filter(|&place| free(&self.pieces[place])).collect();
        fits.sort_by_key(|&place| (self.pieces[place].bytes, place));
        let mut fits = fits.into_iter();
        let mut best = fits.next()?;
        for next in fits {
            if self.expandable(next) >= self.expandable(best) {
                break;
            }
            best = next;
        }
        Some(best)
    }

    /// Splits a piece at a distance from its start.
    fn split(&mut self, place: usize, bytes: usize) {
        let piece = self.pieces[place];
        if bytes > 0 && bytes < piece.bytes {
            let rest = Piece { from: piece.from + bytes, bytes: piece.bytes - bytes, ..piece };
            self.pieces[place].bytes = bytes;
            self.pieces.insert(place + 1, rest);
        }
    }

    /// Joins neighbours that are both free or both without memory.
    fn merge(&mut self) {
        let mut merged: Vec<Piece> = Vec::new();
        for piece in &self.pieces {
            match merged.last_mut() {
                Some(last)
                    if last.state == piece.state && !matches!(piece.state, State::Live(_)) =>
                {
                    last.bytes += piece.bytes;
                }
                _ => merged.push(*piece),
            }
        }
        self.pieces = merged;
    }

    /// Maps what `wanted` bytes need; returns the free piece that has them, and what was mapped.
    fn grow(&mut self, wanted: usize) -> (usize, Vec<usize>) {
        let long_enough = |first: usize| {
            let live = |piece: &&Piece| !matches!(piece.state, State::Live(_));
            let run = self.pieces[first..].iter().take_while(live);
            run.map(|piece| piece.bytes).sum::<usize>() >= wanted
        };
        let from = (0..self.pieces.len()).find_map(|place| {
            if self.pieces[place].state != State::Unmapped {
                return None;
            }
            let free_before = place > 0 && self.pieces[place - 1].state == State::Free;
            let first = if free_before { place - 1 } else { place };
            long_enough(first).then_some(self.pieces[first].from)
        });
        let from = from.expect("a range has no end");
        let mut mapped = Vec::new();
        loop {
            let place = self.pieces.iter().position(|piece| piece.from == from).unwrap();
            let piece = self.pieces[place];
            let has = if piece.state == State::Free { piece.bytes } else { 0 };
            if has >= wanted {
                return (place, mapped);
            }
            let unmapped = if piece.state == State::Free { place + 1 } else { place };
            let pages = (wanted - has).div_ceil(self.page()) * self.page();
            let bytes = pages.min(self.pieces[unmapped].bytes);
            self.split(unmapped, bytes);
            self.pieces[unmapped].state = State::Free;
            self.merge();
            mapped.push(bytes);
        }
    }

    /// Unmaps the pages that are wholly free; returns the bytes of each run.
    fn shrink(&mut self) -> Vec<usize> {
        let (page, mut unmapped) = (self.page(), Vec::new());
        let free: Vec<Piece> =
            self.pieces.iter().filter(|piece| piece.state == State::Free).copied().collect();
        for piece in free {
            let from = piece.from.div_ceil(page) * page;
            let to = (piece.from + piece.bytes) / page * page;
            if from >= to {
                continue;
            }
            let mut place = self.pieces.iter().position(|other| other.from == piece.from).unwrap();
            self.split(place, from - piece.from);
            place += usize::from(from > piece.from);
            self.split(place, to - from);
            self.pieces[place].state = State::Unmapped;
            unmapped.push(to - from);
        }
        self.merge();
        unmapped
    }
}

impl ExpandableRules {
    pub(crate) fn allocate(&mut self, id: usize, bytes: usize, stream: u64) -> Place {
        let wanted = rounded(bytes);
        let small = wanted <= MIB;
        let ours = |range: &Range| range.small == small && range.stream == stream;
        let found = self.ranges.iter().position(ours);
        let at = found.unwrap_or_else(|| {
            let mut range = Range { small, stream, pieces: Vec::new() };
            let bytes = RANGE.div_ceil(range.page()) * range.page();
            range.pieces.push(Piece { from: 0, bytes, state: State::Unmapped });
            self.ranges.push(range);
            self.ranges.len() - 1
        });
        let range = &mut self.ranges[at];
        let place = range.best(wanted).unwrap_or_else(|| {
            let (place, mapped) = range.grow(wanted);
            self.maps += mapped.len() as i64;
            self.reserved_bytes += mapped.iter().sum::<usize>();
            self.reserved_bytes_peak = self.reserved_bytes_peak.max(self.reserved_bytes);
            place
        });
        range.split(place, wanted);
        range.pieces[place].state = State::Live(id);
        Place { small, stream, offset: range.pieces[place].from, fresh: found.is_none() }
    }

    pub(crate) fn free(&mut self, id: usize) {
        for range in &mut self.ranges {
            let live = range.pieces.iter_mut().find(|piece| piece.state == State::Live(id));
            if let Some(piece) = live {
                piece.state = State::Free;
                range.merge();
                return;
            }
        }
        panic!("allocation {id} is not live");
    }

    pub(crate) fn empty_cache(&mut self) {
        for range in &mut self.ranges {
            let unmapped = range.shrink();
            self.unmaps += unmapped.len() as i64;
            self.reserved_bytes -= unmapped.iter().sum::<usize>();
        }
        self.ranges
            .retain(|range| range.pieces.len() > 1 || range.pieces[0].state != State::Unmapped);
    }
}
