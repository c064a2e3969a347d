//! Turning a block of a matrix: reading along one dimension, writing along the other, within a buffer that
//! stays in the first-level cache. Only moves bits; knows element widths, not types.

use std::mem::MaybeUninit;

/// Bytes of one block buffer.
const BUFFER_BYTES: usize = 16 * 1024;

/// The side of a square block whose widest element has `bytes` bytes.
pub(super) const fn edge(bytes: usize) -> usize {
    if bytes <= 4 { 64 } else { 32 }
}

/// Room for one block: `edge(bytes)` squared elements of `bytes` bytes.
#[repr(align(64))]
pub(super) struct Buffer([MaybeUninit<u8>; BUFFER_BYTES]);

impl Buffer {
    /// Nothing in it yet.
    pub(super) const fn new() -> Buffer {
        Buffer([MaybeUninit::uninit(); BUFFER_BYTES])
    }

    /// Where the block starts.
    pub(super) fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// Fills the buffer with `rows` rows of `columns` elements of `bytes` bytes each. Element (r, c) comes
    /// from `source + r * bytes + c * stride`; `stride` is in bytes.
    ///
    /// # Safety
    /// Those addresses must be readable, and `rows * columns * bytes` at most the buffer.
    pub(super) unsafe fn turn(
        &mut self,
        source: *const u8,
        stride: usize,
        bytes: usize,
        rows: usize,
        columns: usize,
    ) {
        debug_assert!(rows * columns * bytes <= BUFFER_BYTES, "a block fits its buffer");
        let to = self.start();
        // SAFETY: handed on from the caller; the buffer is aligned to 64 and the source to its elements.
        unsafe {
            match bytes {
                1 => turn_as::<u8>(source, stride, to, rows, columns),
                2 => turn_as::<u16>(source.cast(), stride, to.cast(), rows, columns),
                4 => turn_as::<u32>(source.cast(), stride, to.cast(), rows, columns),
                _ => turn_as::<u64>(source.cast(), stride, to.cast(), rows, columns),
            }
        }
    }
}

/// Elements that are moved together: a cache line of `u32`, so that each line is read whole.
const STRIP: usize = 16;

/// # Safety
/// `source + r * size_of::<T>() + c * stride` must be readable for r < rows and c < columns, and `to`
/// writable for `rows * columns` elements.
unsafe fn turn_as<T: Copy>(
    source: *const T,
    stride: usize,
    to: *mut T,
    rows: usize,
    columns: usize,
) {
    let whole = rows / STRIP * STRIP;
    for c in 0..columns {
        // SAFETY: c < columns; every r below is under `rows`, and r * columns + c under their product.
        unsafe {
            let from = source.byte_add(c * stride);
            let mut r = 0;
            while r < whole {
                let strip: [T; STRIP] = from.add(r).cast::<[T; STRIP]>().read_unaligned();
                for (k, &value) in strip.iter().enumerate() {
                    *to.add((r + k) * columns + c) = value;
                }
                r += STRIP;
            }
            while r < rows {
                *to.add(r * columns + c) = *from.add(r);
                r += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_block_is_the_transpose() {
        for (rows, columns) in [(1, 1), (3, 5), (64, 64), (17, 33), (64, 1), (1, 64)] {
            let source: Vec<u32> = (0..64 * 80).collect();
            let mut buffer = Buffer::new();
            // SAFETY: 80 elements a column, at least `columns` columns of at least `rows`.
            unsafe { buffer.turn(source.as_ptr().cast(), 80 * 4, 4, rows, columns) };
            for r in 0..rows {
                for c in 0..columns {
                    // SAFETY: inside the block that was just written.
                    let got = unsafe { *buffer.start().cast::<u32>().add(r * columns + c) };
                    assert_eq!(got, source[c * 80 + r], "({r}, {c}) of {rows} x {columns}");
                }
            }
        }
    }
}
