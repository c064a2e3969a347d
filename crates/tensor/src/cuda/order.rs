//! Positions in the order of their keys, by a stable radix sort in the workspace: how values that
//! go to one place come together without atomics.

use plimsoll_core::{Error, Result};
use plimsoll_cuda::{Argument, Grid, source_files};

use super::in_workspace::{ALIGNMENT_BYTES, Space};
use super::{CudaLaunch, NOTHING, whole};

/// Items that a block moves at a time; mirrors the kernels.
const TILE: usize = 2048;
/// Parts at most; the kernel that sums up their counts has as many threads.
const MOST_PARTS: usize = 512;
const DIGITS: usize = 256;
const DIGIT_BITS: u32 = 8;

/// A sort of `count` keys, none above `highest`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) count: usize,
    pub(super) highest: usize,
}

/// Where the keys of an [`Order`] go before it runs, and the rest of its memory.
pub(super) struct OrderSpace {
    pub(super) keys: usize,
    other_keys: usize,
    positions: [usize; 2],
    counts: usize,
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT_BYTES)
}

impl Order {
    fn key_bytes(self) -> usize {
        if self.is_wide() { 8 } else { 4 }
    }

    /// Whether keys take 64 bits.
    pub(super) fn is_wide(self) -> bool {
        self.highest > u32::MAX as usize
    }

    /// The kernels' name for the keys' type.
    pub(super) fn key_type(self) -> &'static str {
        if self.is_wide() { "u64" } else { "u32" }
    }

    /// How many items a part has, and how many parts there are.
    fn parts(self) -> (usize, usize) {
        let wanted = self.count.div_ceil(2 * TILE).clamp(1, MOST_PARTS);
        let length = self.count.div_ceil(wanted).next_multiple_of(TILE).max(TILE);
        (length, self.count.div_ceil(length).max(1))
    }

    pub(super) fn workspace_bytes(self) -> usize {
        let keys = aligned(self.count * self.key_bytes());
        let positions = aligned(self.count * size_of::<u32>());
        2 * (keys + positions) + aligned((self.parts().1 + 1) * DIGITS * size_of::<u32>())
    }

    pub(super) fn space(self, space: &mut Space) -> OrderSpace {
        let keys = aligned(self.count * self.key_bytes());
        let positions = aligned(self.count * size_of::<u32>());
        let counts = aligned((self.parts().1 + 1) * DIGITS * size_of::<u32>());
        OrderSpace {
            keys: space.take(keys),
            other_keys: space.take(keys),
            positions: [space.take(positions), space.take(positions)],
            counts: space.take(counts),
        }
    }

    /// Sorts the keys that were written to `space.keys`; gives the addresses of the sorted keys and
    /// of their positions (32 bits each).
    pub(super) fn run(self, launch: &CudaLaunch<'_>, space: &OrderSpace) -> Result<[usize; 2]> {
        if u32::try_from(self.count).is_err() {
            return Err(Error::unsupported(
                launch.operation,
                format!("{} indices are more than CUDA kernels sort; split them", self.count),
            ));
        }
        let (length, parts) = self.parts();
        let (mut keys, mut other_keys) = (space.keys, space.other_keys);
        let [mut positions, mut other_positions] = space.positions;
        let bits = (usize::BITS - self.highest.leading_zeros()).max(1);
        let totals = space.counts + parts * DIGITS * size_of::<u32>();
        let place = |at: usize| Argument::U64(at as u64);
        let grid = |blocks: usize, threads: u32| Grid {
            blocks: (blocks as u32, 1, 1),
            threads,
            shared_bytes: 0,
        };
        let source = &source_files::ORDER;
        for pass in 0..bits.div_ceil(DIGIT_BITS) {
            let shift = Argument::I32((pass * DIGIT_BITS) as i32);
            let counted =
                [whole(self.count), whole(length), shift.clone(), place(keys), place(space.counts)];
            let name = format!("order_count_{}", self.key_type());
            launch.run(source, &name, grid(parts, DIGITS as u32), &counted)?;
            let summed = [whole(parts), place(space.counts), place(totals)];
            launch.run(source, "order_starts", grid(DIGITS, MOST_PARTS as u32), &summed)?;
            let moved = [
                whole(self.count),
                whole(length),
                shift,
                place(keys),
                // At first a position is its place.
                if pass == 0 { NOTHING } else { place(positions) },
                place(other_keys),
                place(other_positions),
                place(space.counts),
                place(totals),
            ];
            let name = format!("order_move_{}", self.key_type());
            launch.run(source, &name, grid(parts, DIGITS as u32), &moved)?;
            std::mem::swap(&mut keys, &mut other_keys);
            std::mem::swap(&mut positions, &mut other_positions);
        }
        Ok([keys, positions])
    }
}
