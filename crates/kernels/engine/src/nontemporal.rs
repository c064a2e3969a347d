//! Streaming stores: outputs too large for any cache are written around the caches. An ordinary
//! store first reads the line that it changes and pushes another out; for an output that nobody
//! looks at soon, that is a third of all traffic for nothing.
//!
//! Only whole cache lines can go that way. So kernels write into a small buffer that stays in the
//! first-level cache, and `Stream` sends its whole lines on. `iterate.rs` decides when. Not for
//! outputs that are also inputs: their lines have been read anyway.

use std::mem::MaybeUninit;

use crate::Operand;
use crate::simd::{self, Isa, Level, LevelKernel};

/// Outputs of at least this many bytes are streamed: more than the outer caches leave to one
/// program. Tests have smaller tensors, and try both ways.
pub const LARGE_BYTES: usize = if cfg!(test) { 40_000 } else { 32 << 20 };

/// Bytes that a kernel may write between two [`Stream::advance`]: few, so that loads and stores
/// overlap.
pub(crate) const ROOM: usize = 2048;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Whether the first operand, an output, is large and not an input too. (If it is one of the
/// others, by the rule of overlap it is that very view.)
#[inline]
pub fn is_streamed(operands: &[Operand<'_>]) -> bool {
    let Some((out, inputs)) = operands.split_first() else { return false };
    out.layout().numel() * out.dtype().size_bytes() >= LARGE_BYTES
        && inputs.iter().all(|input| input.first_byte() != out.first_byte())
}

/// Bytes on their way to one contiguous output.
///
/// ```text
/// output  ....|.skip....|.........|..        lines of the output
/// buffer      |.skip....|.........|..end     the same lines; the next bytes go to `end`
/// ```
#[repr(align(64))]
pub(crate) struct Stream {
    buffer: [MaybeUninit<u8>; ROOM + LINE],
    /// The line of the output that the buffer starts with.
    to: *mut u8,
    /// Bytes of that line before the output, or before what has been sent.
    skip: usize,
    /// Where the next bytes go, from the buffer's start. Below [`LINE`] between calls.
    end: usize,
}

impl Stream {
    /// A stream to the bytes from `to` on.
    pub(crate) fn new(to: *mut u8) -> Stream {
        let skip = to.addr() % LINE;
        let buffer = [MaybeUninit::uninit(); ROOM + LINE];
        Stream { buffer, to: to.wrapping_sub(skip), skip, end: skip }
    }

    /// Where the next bytes are to be written: room for [`ROOM`] of them.
    pub(crate) fn room(&mut self) -> *mut u8 {
        self.buffer.as_mut_ptr().cast::<u8>().wrapping_add(self.end)
    }

    /// Takes over `bytes` bytes that were written to [`Stream::room`].
    ///
    /// # Safety
    /// That many, at most [`ROOM`], were written there, and the output goes on for as long.
    pub(crate) unsafe fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= ROOM, "no more than there is room for");
        self.end += bytes;
        let whole = self.end / LINE * LINE;
        if whole == 0 {
            return;
        }
        let buffer = self.buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller has written the buffer from `skip` to `end`, which is at most `ROOM +
        // LINE`; `to + skip` on is the output's. What is left over is shorter than a line, and
        // whole lines lie before it.
        unsafe {
            copy(self.to.wrapping_add(self.skip), buffer.add(self.skip), whole - self.skip);
            buffer.copy_from_nonoverlapping(buffer.add(whole), self.end - whole);
        }
        self.to = self.to.wrapping_add(whole);
        self.skip = 0;
        self.end -= whole;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let (from, left) = (self.buffer.as_ptr().cast::<u8>(), self.end.saturating_sub(self.skip));
        // SAFETY: the bytes from `skip` to `end` were written and belong to the output (`advance`'s
        // contract).
        unsafe {
            self.to
                .wrapping_add(self.skip)
                .copy_from_nonoverlapping(from.wrapping_add(self.skip), left)
        };
        fence();
    }
}

/// Copies `bytes` bytes, the whole lines of the target by streaming stores. [`fence`] before
/// another thread may read them.
///
/// # Safety
/// `from` must be readable and `to` writable for as many bytes; they may not overlap.
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the three ranges make up the caller's.
    unsafe {
        to.copy_from_nonoverlapping(from, head);
        simd::dispatch_level(Lines(to.add(head), from.add(head), lines));
        to.add(tail).copy_from_nonoverlapping(from.add(tail), bytes - tail);
    }
}

/// The whole lines of a [`copy`]: to, from, and how many.
struct Lines(*mut u8, *const u8, usize);

impl LevelKernel for Lines {
    type Output = ();
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn run<L: Level>(self) {
        use std::arch::x86_64::*;
        let Lines(to, from, lines) = self;
        for line in 0..lines {
            // SAFETY: inside the lines that `copy`'s caller vouches for, `to` aligned; the level
            // has the instructions. The stores are ordered before whatever follows `fence`, which
            // the caller of `copy` owes.
            unsafe {
                let (to, from) = (to.add(line * LINE), from.add(line * LINE));
                // A line in one store: in quarters it gains nothing over an ordinary copy.
                if matches!(L::ISA, Isa::Avx512) {
                    _mm512_stream_si512(to.cast(), _mm512_loadu_si512(from.cast()));
                } else if matches!(L::ISA, Isa::Avx2) {
                    for half in 0..2 {
                        let value = _mm256_loadu_si256(from.cast::<__m256i>().add(half));
                        _mm256_stream_si256(to.cast::<__m256i>().add(half), value);
                    }
                } else {
                    to.copy_from_nonoverlapping(from, LINE);
                }
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn run<L: Level>(self) {
        let Lines(to, from, lines) = self;
        // SAFETY: `copy`'s caller vouches for the lines.
        unsafe { to.copy_from_nonoverlapping(from, lines * LINE) };
    }
}

/// Orders streamed stores before everything that this thread does later: without it not even a lock
/// would.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of x86-64's baseline; it only orders stores.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_writes_its_bytes_and_no_others() {
        for offset in [0, 1, 16, 63, 64] {
            for pieces in
                [&[][..], &[1], &[64], &[63, 1, 1], &[ROOM, ROOM, 5], &[400; 30], &[3; 100]]
            {
                let total: usize = pieces.iter().sum();
                let mut memory = vec![0xa5u8; offset + total + 200];
                let mut stream = Stream::new(memory.as_mut_ptr().wrapping_add(offset));
                let mut next = 0u8;
                for &piece in pieces {
                    let room = stream.room();
                    for i in 0..piece {
                        next = next.wrapping_add(7);
                        // SAFETY: at most `ROOM` bytes.
                        unsafe { *room.add(i) = next };
                    }
                    // SAFETY: just written, and the memory is long enough.
                    unsafe { stream.advance(piece) };
                }
                drop(stream);
                let mut want = 0u8;
                for (i, &byte) in memory.iter().enumerate() {
                    if (offset..offset + total).contains(&i) {
                        want = want.wrapping_add(7);
                        assert_eq!(byte, want, "byte {i} of {pieces:?} at {offset}");
                    } else {
                        assert_eq!(byte, 0xa5, "byte {i} is outside {pieces:?} at {offset}");
                    }
                }
            }
        }
    }
}
