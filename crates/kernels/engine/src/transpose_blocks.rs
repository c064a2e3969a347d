//! Running over inputs that lie along another dimension than the output (a transposed matrix):
//! square blocks of them are transposed into a buffer that stays in the first-level cache, so that
//! both sides move whole cache lines. Only moves bits; knows element widths, not types.
//! `iterate.rs` decides when.

use std::mem::MaybeUninit;

use crate::iterate::{GRAIN, Plan, Starts, Tile};
use crate::pack::Pack;
use crate::parallel;
use crate::{nontemporal, simd};

/// Bytes of one block buffer.
const BUFFER_BYTES: usize = 16 * 1024;

/// Blocks side by side whose output is streamed together: each visit of an output's row costs the
/// translation of its address, and pays for 1 KiB of it.
const GROUP: usize = 4;

/// The side of a square block whose widest element has `bytes` bytes.
const fn edge(bytes: usize) -> usize {
    if bytes <= 4 { 64 } else { 32 }
}

/// Room for one block: `edge(bytes)` squared elements of `bytes` bytes.
#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; BUFFER_BYTES]);

impl<const N: usize> Plan<N> {
    /// Calls `body` on blocks of (dimension `across`, last dimension), with inputs that run along
    /// `across` transposed first, and the output streamed where `streamed` and its rows are dense.
    pub(crate) fn run_transposed(
        &self,
        starts: Starts<N>,
        across: usize,
        streamed: bool,
        body: &(dyn Fn(&Tile<N>) + Sync),
    ) {
        let last = self.sizes.len() - 1;
        let (inner, outer) = (self.strides[last], self.strides[across]);
        let transposed = Transposed {
            inner,
            outer,
            element_bytes: self.element_bytes,
            inputs: std::array::from_fn(|i| i > 0 && self.runs_along(i, across)),
            edge: edge(self.element_bytes.iter().copied().max().unwrap_or(8)),
            streamed: streamed && inner[0] == self.element_bytes[0],
        };
        let width = if transposed.streamed { GROUP * transposed.edge } else { transposed.edge };
        let (down, along) =
            (self.sizes[across].div_ceil(transposed.edge), self.sizes[last].div_ceil(width));
        let rest = self.without(across);
        let batches: usize = rest.sizes.iter().product();
        let grain = (GRAIN / (transposed.edge * width)).max(1);
        parallel::split(batches * down * along, grain, |blocks| {
            let mut buffers = Buffers::new();
            for block in blocks {
                // First along `across`: the next block reads on where this one stopped. The
                // output's scattered rows do not mind.
                let (row, column) = (block % down * transposed.edge, block / down % along * width);
                let offsets = rest.offsets(block / down / along, rest.sizes.len());
                transposed.block(
                    starts.at(|i| offsets[i] + row * outer[i] + column * inner[i]),
                    transposed.edge.min(self.sizes[across] - row),
                    width.min(self.sizes[last] - column),
                    &mut buffers,
                    body,
                );
            }
            nontemporal::fence();
        });
    }
}

/// The dimensions that blocks span, and what is done with them. Strides in bytes.
struct Transposed<const N: usize> {
    /// Along the last dimension, in which the output lies.
    inner: [usize; N],
    /// Along the dimension in which the transposed inputs lie.
    outer: [usize; N],
    element_bytes: [usize; N],
    /// Which operands are transposed.
    inputs: [bool; N],
    edge: usize,
    streamed: bool,
}

/// One thread's buffers: for each transposed input, and for the output.
struct Buffers<const N: usize> {
    inputs: [Buffer; N],
    output: [Buffer; GROUP],
}

impl<const N: usize> Buffers<N> {
    fn new() -> Buffers<N> {
        const EMPTY: Buffer = Buffer([MaybeUninit::uninit(); BUFFER_BYTES]);
        Buffers { inputs: [EMPTY; N], output: [EMPTY; GROUP] }
    }
}

impl<const N: usize> Transposed<N> {
    /// `rows` rows of `columns` elements from `pointers` on; at most `edge` rows, and as many
    /// columns as the buffers hold.
    fn block(
        &self,
        pointers: [*mut u8; N],
        rows: usize,
        columns: usize,
        buffers: &mut Buffers<N>,
        body: &(dyn Fn(&Tile<N>) + Sync),
    ) {
        let (inner, outer) = (self.inner, self.outer);
        let row_bytes = columns * self.element_bytes[0];
        let output = buffers.output.as_mut_ptr().cast::<u8>();
        for first in (0..columns).step_by(self.edge) {
            let mut tile = Tile {
                pointers: std::array::from_fn(|i| pointers[i].wrapping_add(first * inner[i])),
                inner,
                outer,
                len: self.edge.min(columns - first),
                rows,
            };
            for i in (1..N).filter(|&i| self.inputs[i]) {
                let (to, bytes) =
                    (buffers.inputs[i].0.as_mut_ptr().cast::<u8>(), self.element_bytes[i]);
                // SAFETY: the tile lies inside input `i` (the plan's dimensions are its layout's,
                // which dispatch checked against the storage), elements along `across` are
                // neighbours there, and a block fits its buffer.
                unsafe { transpose(tile.pointers[i], inner[i], bytes, to, rows, tile.len) };
                tile.pointers[i] = to;
                tile.inner[i] = bytes;
                tile.outer[i] = tile.len * bytes;
            }
            if self.streamed {
                tile.pointers[0] = output.wrapping_add(first * inner[0]);
                tile.outer[0] = row_bytes;
            }
            body(&tile);
        }
        if self.streamed {
            for row in 0..rows {
                let to = pointers[0].wrapping_add(row * outer[0]);
                // SAFETY: the body has written these rows to the buffer; they are the output's.
                unsafe { nontemporal::copy(to, output.add(row * row_bytes), row_bytes) };
            }
        }
    }
}

/// Writes `rows` rows of `columns` elements of `bytes` bytes each to `to`. Element (r, c) comes
/// from `source + r * bytes + c * stride`; `stride` is in bytes, a multiple of `bytes`.
///
/// # Safety
/// Those addresses must be readable and aligned, and `to` aligned and writable for as many
/// elements.
unsafe fn transpose(
    source: *const u8,
    stride: usize,
    bytes: usize,
    to: *mut u8,
    rows: usize,
    columns: usize,
) {
    let step = (stride / bytes) as isize;
    // SAFETY: handed on from the caller. Packing is transposing, and of floats into their own sums
    // moves bits.
    unsafe {
        match bytes {
            1 => transpose_as::<u8>(source, step, to, rows, columns),
            2 => transpose_as::<u16>(source.cast(), step, to.cast(), rows, columns),
            4 => Pack::<f32>::transposing(source.cast(), step, to.cast(), rows, columns)
                .run(simd::isa()),
            _ => Pack::<f64>::transposing(source.cast(), step, to.cast(), rows, columns)
                .run(simd::isa()),
        }
    }
}

/// Elements that are moved together, so that each line is read whole.
const STRIP: usize = 16;

/// # Safety
/// As for [`transpose`].
unsafe fn transpose_as<T: Copy>(
    source: *const T,
    stride: isize,
    to: *mut T,
    rows: usize,
    columns: usize,
) {
    let whole = rows / STRIP * STRIP;
    for c in 0..columns {
        // SAFETY: c < columns; every r below is under `rows`, and r * columns + c under their
        // product.
        unsafe {
            let from = source.offset(c as isize * stride);
            for r in (0..whole).step_by(STRIP) {
                let strip: [T; STRIP] = from.add(r).cast::<[T; STRIP]>().read();
                for (k, &value) in strip.iter().enumerate() {
                    *to.add((r + k) * columns + c) = value;
                }
            }
            for r in whole..rows {
                *to.add(r * columns + c) = *from.add(r);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
        for (rows, columns) in [(1, 1), (3, 5), (64, 64), (17, 33), (64, 1), (1, 64)] {
            let source: Vec<T> = (0..64 * 80).map(&make).collect();
            let mut transposed = vec![source[0]; rows * columns];
            let (from, to, width) = (source.as_ptr(), transposed.as_mut_ptr(), size_of::<T>());
            // SAFETY: 80 elements a column, at least `columns` columns of at least `rows`.
            unsafe { transpose(from.cast(), 80 * width, width, to.cast(), rows, columns) };
            for r in 0..rows {
                for c in 0..columns {
                    let got = transposed[r * columns + c];
                    assert_eq!(got, source[c * 80 + r], "({r}, {c}) of {rows} x {columns}");
                }
            }
        }
    }

    #[test]
    fn a_block_is_transposed() {
        check(|i| i as u8);
        check(|i| i as u16);
        // Bits that are no numbers stay as they are, too.
        check(|i| i as u32 | 0x7f80_0000);
        check(|i| i as u64 | 0x7ff0_0000_0000_0000);
    }
}
