//! `bf16` products on the matrix unit: the loops and the packing around `amx_tile.rs`.
//!
//! ```text
//! for each panel of C's columns:
//!     pack B[all k, panel] into strips of 32 columns                     shared by all threads
//!     threads take blocks of rows; each packs its rows of A, then for each group of strips:
//!         for each slice of k, for each strip, for each 32 rows: add to the block's f32 sums
//!         round the group's sums into C, once
//! ```
//! A slice of a strip stays in the first-level cache; a thread's A, its sums and a group's slice of
//! B in the second.
//!
//! Packed, k goes in pairs: the unit multiplies two neighbours of k at a time. A square of 16 lanes
//! (rows of A, or columns of B) x 16 pairs is 16 registers; A stores it lane by lane, B pair by
//! pair, and whichever way the source lies is a load or a load and a transposition.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::arch::x86_64::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::bf16;

use super::amx_tile::{self, BLOCK, STEP, STEP_BYTES, Tiles};
use super::geometry::Geometry;
use super::product::Product;
use plimsoll_engine::pack::transpose_f32;
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Isa, Level, LevelKernel};

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AmxBlocking {
    /// Threads at most.
    parts: usize,
    /// Steps of k, the last one padded with zeros.
    steps: usize,
    /// Strips of a panel.
    strips: usize,
    /// 32-row tiles of a thread's block of rows, at most.
    tiles: usize,
    /// Blocks of rows that m's tiles are cut into, evenly.
    row_blocks: usize,
}

/// Steps of a slice of k: 512 elements, 32 KiB of a strip.
const SLICE_STEPS: usize = 16;
/// Strips of a group: 128 columns.
const GROUP_STRIPS: usize = 4;
/// Bytes of a thread's packed rows, where k allows.
const ROWS_BYTES: usize = 1 << 20;
/// Bytes of a packed panel, where k allows.
const PANEL_BYTES: usize = 8 << 20;

/// Whether the unit can be used with this level of vector instructions, which packing needs.
pub(super) fn available(isa: Isa) -> bool {
    isa == Isa::Avx512 && amx_tile::available()
}

impl AmxBlocking {
    pub(super) fn new(g: &Geometry, parts: usize) -> AmxBlocking {
        let steps = g.k.div_ceil(STEP);
        let strip_bytes = steps * STEP_BYTES;
        let strips = g.n.div_ceil(BLOCK).min((PANEL_BYTES / strip_bytes).max(1));
        let all_tiles = g.m.div_ceil(BLOCK);
        // A power of two of tiles where k is small enough, and several blocks for every thread.
        let tiles = (ROWS_BYTES / strip_bytes).clamp(1, 8).min(all_tiles.div_ceil(2 * parts));
        let row_blocks = all_tiles.div_ceil(tiles);
        AmxBlocking { parts: parts.min(row_blocks), steps, strips, tiles, row_blocks }
    }

    fn panel_bytes(&self) -> usize {
        self.strips * self.steps * STEP_BYTES
    }

    fn rows_bytes(&self) -> usize {
        self.tiles * self.steps * STEP_BYTES
    }

    /// Bytes of the sums of one block of rows and one group of strips.
    fn sums_bytes(&self) -> usize {
        self.tiles * BLOCK * GROUP_STRIPS * BLOCK * size_of::<f32>()
    }

    pub(super) fn workspace_bytes(&self) -> usize {
        self.panel_bytes() + self.parts * (self.rows_bytes() + self.sums_bytes())
    }
}

/// Multiplies.
///
/// # Safety
/// `product` keeps `gemm`'s contract; `workspace` is 64-byte aligned and holds `workspace_bytes`;
/// `blocking` was made for this geometry; [`available`] said yes.
pub(super) unsafe fn run(product: Product<bf16>, blocking: &AmxBlocking, workspace: *mut u8) {
    let Geometry { m, n, k, a, b, .. } = product.geometry;
    let workspace = Shared(workspace);
    let &AmxBlocking { parts, steps, strips, row_blocks, .. } = blocking;
    let strip_bytes = steps * STEP_BYTES;
    for panel in (0..n.div_ceil(BLOCK)).step_by(strips) {
        let strips = strips.min(n.div_ceil(BLOCK) - panel);
        let pack_strip = |strip: usize| {
            let first = (panel + strip) * BLOCK;
            // SAFETY: the columns are inside B, and the strip has its own place in the panel.
            unsafe {
                let source = product.b_at(0, first);
                let lanes = BLOCK.min(n - first);
                let to = workspace.add(strip * strip_bytes);
                let strides = (b.column, b.row);
                simd::dispatch_on(
                    Isa::Avx512,
                    PackPairs { source, lanes, strides, k, to, by_pair: true },
                );
            }
        };
        let grain = if parts == 1 { strips } else { (65536 / strip_bytes).max(1) };
        parallel::split(strips, grain, |range| range.for_each(pack_strip));
        let next = AtomicUsize::new(0);
        parallel::fork(parts, |part| {
            let own =
                blocking.panel_bytes() + part * (blocking.rows_bytes() + blocking.sums_bytes());
            // SAFETY: each part has its own rows and sums behind the panel; `available` said yes.
            let (rows, sums, tiles) = unsafe {
                let rows = workspace.add(own);
                (rows, rows.add(blocking.rows_bytes()).cast::<f32>(), Tiles::configure())
            };
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= row_blocks {
                    return;
                }
                let block_tiles = parallel::part_range(m.div_ceil(BLOCK), row_blocks, block);
                for (index, tile) in block_tiles.clone().enumerate() {
                    let lanes = BLOCK.min(m - tile * BLOCK);
                    // SAFETY: the rows are inside A, and the tile has its own place in the part's
                    // rows.
                    unsafe {
                        let source = product.a_at(tile * BLOCK, 0);
                        let to = rows.add(index * strip_bytes);
                        let strides = (a.row, a.column);
                        let pack = PackPairs { source, lanes, strides, k, to, by_pair: false };
                        simd::dispatch_on(Isa::Avx512, pack);
                    }
                }
                for group in (0..strips).step_by(GROUP_STRIPS) {
                    let group = group..strips.min(group + GROUP_STRIPS);
                    let task = Task { blocking, block_tiles: block_tiles.clone(), rows, sums };
                    // SAFETY: the panel is packed and the block's rows too; this task owns its part
                    // of C.
                    unsafe {
                        task.multiply(&tiles, m, workspace.0, group.clone());
                        task.round(&product, panel, group);
                    }
                }
            }
        });
    }
}

/// One block of rows, packed.
struct Task<'a> {
    blocking: &'a AmxBlocking,
    block_tiles: Range<usize>,
    rows: *const u8,
    sums: *mut f32,
}

/// `f32` from one row of a group's sums to the next.
const SUMS_ROW: usize = GROUP_STRIPS * BLOCK;

impl Task<'_> {
    unsafe fn multiply(&self, tiles: &Tiles, m: usize, panel: *const u8, group: Range<usize>) {
        let steps = self.blocking.steps;
        let strip_bytes = steps * STEP_BYTES;
        for slice in (0..steps).step_by(SLICE_STEPS) {
            let depth = SLICE_STEPS.min(steps - slice);
            for (column, strip) in group.clone().enumerate() {
                for (index, tile) in self.block_tiles.clone().enumerate() {
                    let half = m - tile * BLOCK <= BLOCK / 2;
                    // SAFETY: the slice lies inside the packed strips, and the block inside the
                    // sums.
                    unsafe {
                        let a = self.rows.add(index * strip_bytes + slice * STEP_BYTES);
                        let b = panel.add(strip * strip_bytes + slice * STEP_BYTES);
                        let sums = self.sums.add(index * BLOCK * SUMS_ROW + column * BLOCK);
                        tiles.multiply(depth, a, b, sums, 4 * SUMS_ROW, (slice == 0, half));
                    }
                }
            }
        }
    }

    unsafe fn round(&self, product: &Product<bf16>, panel: usize, group: Range<usize>) {
        let (row, column) = (self.block_tiles.start * BLOCK, (panel + group.start) * BLOCK);
        let height = product.geometry.m.min(self.block_tiles.end * BLOCK) - row;
        let width = product.geometry.n.min((panel + group.end) * BLOCK) - column;
        // SAFETY: the sums of these rows and columns are complete, and C's belong to this task.
        unsafe {
            product.write_tile(Isa::Avx512, (row, column), (height, width), self.sums, SUMS_ROW)
        };
    }
}

/// Packs up to 32 lanes for the whole of k, padding with zeros to 32 lanes and whole steps.
struct PackPairs {
    source: *const bf16,
    lanes: usize,
    /// From lane to lane and from one k to the next, in elements.
    strides: (isize, isize),
    k: usize,
    to: *mut u8,
    /// B's order (pair by pair), or A's (lane by lane).
    by_pair: bool,
}

impl LevelKernel for PackPairs {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        assert!(matches!(L::ISA, Isa::Avx512), "only called at this level");
        for step in 0..self.k.div_ceil(STEP) {
            for tile in 0..2 {
                // SAFETY: the squares lie inside the source, masked at its ends, and `to` has two
                // tiles a step; `available` vouches for the instructions.
                unsafe {
                    let (square, is_by_pair) = self.square(tile * 16, step * STEP);
                    let turned =
                        if is_by_pair == self.by_pair { square } else { transpose_f32(square) };
                    let to = self.to.add(step * STEP_BYTES + tile * 1024).cast::<f32>();
                    for (line, value) in turned.into_iter().enumerate() {
                        _mm512_storeu_ps(to.add(16 * line), value);
                    }
                }
            }
        }
    }
}

impl PackPairs {
    /// 16 lanes x 16 pairs from `(lane, k)` on, and whether its registers are pairs (or lanes).
    #[inline(always)]
    unsafe fn square(&self, lane: usize, k: usize) -> ([__m512; 16], bool) {
        let lanes = self.lanes.saturating_sub(lane).min(16);
        let depth = (self.k - k).min(STEP);
        let (lane_stride, k_stride) = self.strides;
        // SAFETY: offsets stay below `lanes` and `k`; masks cut off the rest.
        unsafe {
            let mut square = [_mm512_setzero_ps(); 16];
            let at = |lane: usize, k: usize| {
                self.source.offset(lane as isize * lane_stride + k as isize * k_stride)
            };
            if k_stride == 1 {
                let mask = u32::MAX >> (32 - depth);
                for (index, line) in square.iter_mut().enumerate().take(lanes) {
                    let pairs = _mm512_maskz_loadu_epi16(mask, at(lane + index, k).cast());
                    *line = _mm512_castsi512_ps(pairs);
                }
                return (square, false);
            }
            if lane_stride == 1 && lanes > 0 {
                let mask = u16::MAX >> (16 - lanes);
                let load = |k: usize| _mm256_maskz_loadu_epi16(mask, at(lane, k).cast());
                for (pair, line) in square.iter_mut().enumerate().take(depth.div_ceil(2)) {
                    let even = _mm512_cvtepu16_epi32(load(k + 2 * pair));
                    let odd = if 2 * pair + 1 < depth {
                        _mm512_cvtepu16_epi32(load(k + 2 * pair + 1))
                    } else {
                        _mm512_setzero_si512()
                    };
                    let both = _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd));
                    *line = _mm512_castsi512_ps(both);
                }
                return (square, true);
            }
            let mut line = [bf16::ZERO; 32];
            for (index, value) in square.iter_mut().enumerate().take(lanes) {
                for (offset, element) in line.iter_mut().enumerate().take(depth) {
                    *element = *at(lane + index, k + offset);
                }
                *value = _mm512_loadu_ps(line.as_ptr().cast());
            }
            (square, false)
        }
    }
}
