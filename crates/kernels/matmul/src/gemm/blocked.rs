//! The general product: cut into blocks that fit the caches, packed, and multiplied tile by tile.
//!
//! ```text
//! for each panel of C's columns (nc wide), for each slice of k (kc deep):
//!     pack B[slice, panel] into strips of the tile's width
//!     for each row block, for each group of the panel's columns: pack the row block of A, then
//!     for each tile of rows, for each strip: the inner kernel
//! ```
//! Where there are columns enough, threads take whole panels and never wait for each other.
//! Otherwise they pack each panel together and share out its row blocks and column groups.
//!
//! The packed panel of B stays in the second-level cache and a tile's rows of A in the first; C
//! passes through once per slice, along its rows. (Strips outside and tiles inside, with A in the
//! second level, is the textbook's order: 10 % slower here, because it walks down C across pages.)
//! `blocking.rs` chooses the sizes. The sum of each element of C is always made in the same order:
//! results do not depend on timing.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::blocking::{Blocking, is_own_sum};
use super::geometry::Geometry;
use super::micro::{Kernels, MOST_COLUMNS, MOST_ROWS, Micro, Tile, TileFn};
use super::product::Product;
use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::pack::{Pack, prefetch_strip};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;

/// Rows of B that are packed together.
const BAND_ROWS: usize = 16;

/// One call's state: the product, its cut, and the three regions of the workspace.
struct Run<E: Factor> {
    product: Product<E>,
    blocking: Blocking,
    micro: Micro<E::Sum>,
    panel: Shared<E::Sum>,
    blocks: Shared<E::Sum>,
    kept: Shared<E::Sum>,
}

/// Where in the product the threads are: one panel of columns, one slice of k.
#[derive(Clone)]
struct Panel {
    columns: Range<usize>,
    slice: Range<usize>,
    first_slice: bool,
    last_slice: bool,
}

/// Multiplies.
///
/// # Safety
/// `product` keeps `gemm`'s contract; `workspace` is 64-byte aligned and holds
/// `blocking.workspace_bytes::<E>()`; `blocking` was made for this geometry.
pub(super) unsafe fn run<E: Factor>(product: Product<E>, blocking: &Blocking, workspace: *mut u8)
where
    E::Sum: Kernels,
{
    let panel = workspace.cast::<E::Sum>();
    // SAFETY: the three regions lie one after another in `workspace_bytes`.
    let (blocks, kept) = unsafe {
        let blocks = panel.add(blocking.panels_at_once() * blocking.panel_len());
        (blocks, blocks.add(blocking.parts * blocking.block_len()))
    };
    let run = Run {
        product,
        blocking: *blocking,
        micro: E::Sum::micro(blocking.isa),
        panel: Shared(panel),
        blocks: Shared(blocks),
        kept: Shared(kept),
    };
    let next = AtomicUsize::new(0);
    let own = |part: usize| {
        loop {
            let panel = next.fetch_add(1, Ordering::Relaxed);
            if panel >= blocking.panels {
                return;
            }
            run.each_slice(panel, |place| {
                // SAFETY: the place is inside the geometry, and its columns and the part's regions
                // of the workspace are this thread's alone.
                unsafe {
                    run.pack_strips(&place, 0..run.strips(&place), part);
                    (0..blocking.row_blocks)
                        .for_each(|block| run.multiply_task(&place, block, 0, part, true));
                }
            });
        }
    };
    if blocking.own_panels {
        return parallel::fork(blocking.parts, own);
    }
    for panel in 0..blocking.panels {
        run.each_slice(panel, |place| {
            // SAFETY: the place is inside the geometry; the join between the two calls orders the
            // packed panel before its readers.
            unsafe {
                run.pack_together(&place);
                run.multiply_together(&place);
            }
        });
    }
}

impl<E: Factor> Run<E>
where
    E::Sum: Kernels,
{
    /// Calls `body` on the slices of a panel, in order.
    fn each_slice(&self, panel: usize, mut body: impl FnMut(Panel)) {
        let Blocking { nc, kc, slices, .. } = self.blocking;
        let Geometry { n, k, .. } = self.product.geometry;
        for slice in 0..slices {
            body(Panel {
                columns: panel * nc..n.min((panel + 1) * nc),
                slice: slice * kc..k.min((slice + 1) * kc),
                first_slice: slice == 0,
                last_slice: slice + 1 == slices,
            });
        }
    }

    fn strips(&self, place: &Panel) -> usize {
        place.columns.len().div_ceil(self.blocking.columns)
    }

    /// Where the packed panel of `part` starts.
    unsafe fn panel(&self, part: usize) -> *mut E::Sum {
        let own = if self.blocking.own_panels { part } else { 0 };
        // SAFETY: there are as many panels as parts, or one.
        unsafe { self.panel.add(own * self.blocking.panel_len()) }
    }

    /// Packs some strips of B. Where B is not packed, only the last, if it is not whole, to the
    /// panel's start.
    unsafe fn pack_strips(&self, place: &Panel, strips: Range<usize>, part: usize) {
        let Blocking { columns, isa, pack_b, .. } = self.blocking;
        let (b, depth) = (self.product.geometry.b, place.slice.len());
        // Where B's rows are contiguous, a few rows for all strips, then the next few: strip by
        // strip each visit of a row would read only two lines of it.
        let band = if b.column == 1 { BAND_ROWS } else { depth };
        for start in (0..depth).step_by(band) {
            for strip in strips.clone() {
                let first = place.columns.start + strip * columns;
                let lanes = columns.min(place.columns.end - first);
                if !pack_b && lanes == columns {
                    continue;
                }
                let to = start * columns + if pack_b { strip * columns * depth } else { 0 };
                // SAFETY: the strip is inside B, and its place inside the panel belongs to it
                // alone.
                unsafe {
                    Pack {
                        source: self.product.b_at(place.slice.start + start, first),
                        lanes,
                        lane_stride: b.column,
                        steps: band.min(depth - start),
                        step_stride: b.row,
                        to: self.panel(part).add(to),
                        width: columns,
                    }
                    .run(isa);
                }
            }
        }
    }

    unsafe fn pack_together(&self, place: &Panel) {
        let strips = self.strips(place);
        // A part of less than about 32 KiB is not worth a wake-up.
        let grain = (8192 / (place.slice.len() * self.blocking.columns)).max(1);
        let grain = if self.blocking.parts == 1 || !self.blocking.pack_b { strips } else { grain };
        // SAFETY: the caller's contract; strips are distinct.
        parallel::split(strips, grain, |range| unsafe { self.pack_strips(place, range, 0) });
    }

    unsafe fn multiply_together(&self, place: &Panel) {
        let Blocking { parts, row_blocks, groups, .. } = self.blocking;
        let next = AtomicUsize::new(0);
        parallel::fork(parts, |part| {
            let mut packed = usize::MAX;
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= row_blocks * groups {
                    return;
                }
                let (block, group) = (task / groups, task % groups);
                // SAFETY: each part packs into its own block; tasks write disjoint elements of C.
                unsafe { self.multiply_task(place, block, group, part, packed != block) };
                packed = block;
            }
        });
    }

    /// One row block against one group of the panel's columns; packs the block first if asked to.
    unsafe fn multiply_task(
        &self,
        place: &Panel,
        block: usize,
        group: usize,
        part: usize,
        pack: bool,
    ) {
        let Blocking { row_blocks, groups, pack_a, .. } = self.blocking;
        let rows = parallel::part_range(self.product.geometry.m, row_blocks, block);
        let strips = parallel::part_range(self.strips(place), groups, group);
        // SAFETY: the caller's contract; the part's block is its own.
        unsafe {
            if pack_a && pack {
                self.pack_rows(place, rows.clone(), part);
            }
            for tile in 0..self.tiles(&rows) {
                self.multiply_tiles(place, &rows, tile, strips.clone(), part);
            }
        }
    }

    fn tiles(&self, rows: &Range<usize>) -> usize {
        rows.len().div_ceil(self.blocking.rows)
    }

    unsafe fn pack_rows(&self, place: &Panel, rows: Range<usize>, part: usize) {
        let a = self.product.geometry.a;
        let (tiles, depth) = (self.tiles(&rows), place.slice.len());
        for tile in 0..tiles {
            let tile_rows = parallel::part_range(rows.len(), tiles, tile);
            // SAFETY: the rows are inside A; tiles lie one after another in the part's own block.
            unsafe {
                Pack {
                    source: self.product.a_at(rows.start + tile_rows.start, place.slice.start),
                    lanes: tile_rows.len(),
                    lane_stride: a.row,
                    steps: depth,
                    step_stride: a.column,
                    to: self.blocks.add(part * self.blocking.block_len() + tile_rows.start * depth),
                    width: tile_rows.len(),
                }
                .run(self.blocking.isa);
            }
        }
    }

    /// One tile of rows against some strips.
    unsafe fn multiply_tiles(
        &self,
        place: &Panel,
        rows: &Range<usize>,
        tile: usize,
        strips: Range<usize>,
        part: usize,
    ) {
        let Blocking { columns, pack_a, pack_b, .. } = self.blocking;
        let depth = place.slice.len();
        let tile_rows = parallel::part_range(rows.len(), self.tiles(rows), tile);
        let (row, height) = (rows.start + tile_rows.start, tile_rows.len());
        let kernel = self.micro.tile(height, pack_a);
        // SAFETY: packed tiles are where `pack_rows` put them; unpacked A (only where `E` is its
        // own sum) is inside the operand.
        let (a, a_row, a_step) = unsafe {
            if pack_a {
                let block = part * self.blocking.block_len() + tile_rows.start * depth;
                (self.blocks.add(block).cast_const(), 1, height as isize)
            } else {
                let first = self.product.a_at(row, place.slice.start).cast::<E::Sum>();
                (first, self.product.geometry.a.row, self.product.geometry.a.column)
            }
        };
        if a_step == 1 && !pack_a {
            // The rows of the next tile, or of the next product of a batch, while these are
            // multiplied.
            for next in height..2 * height {
                prefetch_strip(a.wrapping_offset(next as isize * a_row), depth);
            }
        }
        for strip in strips {
            let column = place.columns.start + strip * columns;
            let whole = column + columns <= place.columns.end;
            // SAFETY: a packed strip is in the panel, the unpacked one has all its columns inside
            // B; the tile's rows and columns are inside C and belong to this task.
            unsafe {
                let (b, b_step) = if pack_b {
                    (self.panel(part).add(strip * columns * depth).cast_const(), columns as isize)
                } else if whole {
                    let b = self.product.b_at(place.slice.start, column).cast::<E::Sum>();
                    (b, self.product.geometry.b.row)
                } else {
                    (self.panel(part).cast_const(), columns as isize)
                };
                let (c, c_row) = (std::ptr::null_mut(), 0);
                let (alpha, beta) = (E::Sum::ONE, E::Sum::ZERO);
                let operands =
                    Tile { k: depth, a, a_row, a_step, b, b_step, c, c_row, alpha, beta };
                self.finish_tile(place, (row, column), height, kernel, operands);
            }
        }
    }

    /// Runs the inner kernel into C itself, into the kept sums, or into a scratch tile, and from
    /// there into C.
    unsafe fn finish_tile(
        &self,
        place: &Panel,
        (row, column): (usize, usize),
        height: usize,
        kernel: TileFn<E::Sum>,
        mut operands: Tile<E::Sum>,
    ) {
        let Blocking { columns, nc, keeps_sums, .. } = self.blocking;
        let width = columns.min(place.columns.end - column);
        let (one, zero) = (E::Sum::ONE, E::Sum::ZERO);
        let c = self.product.geometry.c;
        // SAFETY: C is written directly only where the tile is whole, its columns contiguous and
        // its elements sums; kept sums have whole strips; the scratch tile has room for the largest
        // tile.
        unsafe {
            if is_own_sum::<E>() && width == columns && c.column == 1 {
                operands.c = self.product.c_at(row, column).cast();
                operands.c_row = c.row;
                operands.alpha = self.product.alpha;
                operands.beta = if place.first_slice { self.product.beta } else { one };
                return kernel(&operands);
            }
            let mut scratch = MaybeUninit::<[E::Sum; MOST_ROWS * MOST_COLUMNS]>::uninit();
            if keeps_sums {
                operands.c = self.kept.add(row * nc + column - place.columns.start);
                operands.c_row = nc as isize;
                operands.beta = if place.first_slice { zero } else { one };
            } else {
                operands.c = scratch.as_mut_ptr().cast();
                operands.c_row = columns as isize;
            }
            kernel(&operands);
            if keeps_sums && !place.last_slice {
                return;
            }
            let product = match keeps_sums || place.first_slice {
                true => self.product,
                false => Product { beta: one, ..self.product },
            };
            let sums_row = operands.c_row as usize;
            product.write_tile(
                self.blocking.isa,
                (row, column),
                (height, width),
                operands.c,
                sums_row,
            );
        }
    }
}
