//! The general product: cut into blocks that fit the caches, packed, and multiplied tile by tile.
//!
//! ```text
//! for each panel of C's columns (nc wide), for each slice of k (kc deep):
//!     pack B[slice, panel] into strips of the tile's width            shared by all threads
//!     threads take (row block, column group) tasks; each packs its row block of A for itself, then
//!     for each tile of rows, for each strip: the inner kernel
//! ```
//! The packed panel of B stays in the second-level cache and a tile's rows of A in the first; C passes
//! through once per slice, along its rows. (Strips outside and tiles inside, with A in the second level,
//! is the textbook's order: 10 % slower here, because it walks down C across pages.)
//! Sizes are chosen in [`Blocking::new`], from the shape and the number of threads alone, and the sum of
//! each element of C is always made in the same order: results do not depend on timing.

use std::any::TypeId;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::element::{Accumulator, Element};
use super::geometry::Geometry;
use super::micro::{Kernels, MOST_COLUMNS, MOST_ROWS, Micro, Tile, TileFn};
use super::pack::Pack;
use super::product::{Product, Shared};
use crate::cpu::simd::Isa;
use crate::parallel;

/// How a product is cut. All counts are of elements unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocking {
    isa: Isa,
    /// Threads at most.
    parts: usize,
    /// Depth of a slice of k.
    kc: usize,
    /// Slices of k.
    slices: usize,
    /// Width of a panel, whole strips.
    nc: usize,
    /// Row blocks that m is cut into, evenly.
    row_blocks: usize,
    /// Rows of the largest block.
    mc: usize,
    /// Column groups that a panel's strips are cut into, evenly.
    groups: usize,
    /// Columns of a tile.
    columns: usize,
    /// Rows of the tallest tile.
    rows: usize,
    /// Whether A and B are packed, or read where they are.
    pack_a: bool,
    pack_b: bool,
    /// Whether sums wait in the workspace between slices, because C cannot hold them unrounded.
    keeps_sums: bool,
}

/// Bytes of a slice of k, at most: deep enough that C is seldom revisited. Tuned on Sapphire Rapids, as are
/// the next two.
const SLICE_BYTES: usize = 512 * 4;
/// Bytes of a panel of B, at most: it stays in a second-level cache of 2 MiB.
const PANEL_BYTES: usize = 1 << 20;
/// Rows of a block, at most.
const BLOCK_ROWS: usize = 84;
/// Where sums wait in the workspace, panels are this narrow, so that they take little of it.
const NARROW_PANEL: usize = 512;

impl Blocking {
    pub(super) fn new<E: Element>(g: &Geometry, isa: Isa, parts: usize) -> Blocking
    where
        E::Sum: Kernels,
    {
        let Micro { rows, columns, .. } = E::Sum::micro(isa);
        let sum_bytes = size_of::<E::Sum>();
        let plain = is_own_sum::<E>();
        let slices = g.k.div_ceil(SLICE_BYTES / sum_bytes);
        let kc = g.k.div_ceil(slices);
        let slices = g.k.div_ceil(kc);
        let keeps_sums = slices > 1 && !plain;
        let widest = if keeps_sums { NARROW_PANEL } else { PANEL_BYTES / sum_bytes / kc };
        let panels = g.n.div_ceil(widest.max(columns));
        let nc = g.n.div_ceil(panels).next_multiple_of(columns);
        let small = g.k <= 256 && g.m * g.k <= 128 * 256;
        let pack_a = !(plain && small && g.n <= 4 * columns);
        let pack_b = !(plain && small && g.b.column == 1 && g.m <= 4 * rows);
        let blocks = g.m.div_ceil(BLOCK_ROWS);
        let row_blocks = if parts == 1 {
            blocks
        } else {
            // Several tasks a thread, so that a thread that comes late is made up for.
            blocks.max((2 * parts).min(g.m.div_ceil(2 * rows))).next_multiple_of(parts).min(g.m)
        };
        let strips = nc / columns;
        let groups = if parts == 1 || row_blocks >= 2 * parts {
            1
        } else {
            (4 * parts).div_ceil(row_blocks).min(strips)
        };
        let mc = g.m.div_ceil(row_blocks);
        Blocking {
            isa,
            parts: parts.min(row_blocks * groups),
            kc,
            slices,
            nc,
            row_blocks,
            mc,
            groups,
            columns,
            rows,
            pack_a,
            pack_b,
            keeps_sums,
        }
    }

    /// Sums in the packed panel of B. Where B is not packed, one strip: the last one, which a kernel that
    /// reads whole vectors would run over.
    fn panel_len(&self) -> usize {
        self.kc * if self.pack_b { self.nc } else { self.columns }
    }

    /// Sums in one thread's packed row block, a whole number of cache lines.
    fn block_len(&self) -> usize {
        if self.pack_a { (self.mc * self.kc).next_multiple_of(16) } else { 0 }
    }

    fn kept_len(&self, g: &Geometry) -> usize {
        if self.keeps_sums { g.m * self.nc } else { 0 }
    }

    pub(super) fn workspace_bytes<E: Element>(&self, g: &Geometry) -> usize {
        (self.panel_len() + self.parts * self.block_len() + self.kept_len(g)) * size_of::<E::Sum>()
    }
}

fn is_own_sum<E: Element>() -> bool {
    TypeId::of::<E>() == TypeId::of::<E::Sum>()
}

/// One call's state: the product, its cut, and the three regions of the workspace.
struct Run<E: Element> {
    product: Product<E>,
    blocking: Blocking,
    micro: Micro<E::Sum>,
    panel: Shared<E::Sum>,
    blocks: Shared<E::Sum>,
    kept: Shared<E::Sum>,
}

/// Where in the product the threads are: one panel of columns, one slice of k.
#[derive(Clone)]
struct Place {
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
pub(super) unsafe fn run<E: Element>(product: Product<E>, blocking: &Blocking, workspace: *mut u8)
where
    E::Sum: Kernels,
{
    let panel = workspace.cast::<E::Sum>();
    // SAFETY: the three regions lie one after another in `workspace_bytes`.
    let (blocks, kept) = unsafe {
        let blocks = panel.add(blocking.panel_len());
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
    let Geometry { n, k, .. } = product.geometry;
    for column in (0..n).step_by(blocking.nc) {
        for slice in 0..blocking.slices {
            let first = slice * blocking.kc;
            let place = Place {
                columns: column..n.min(column + blocking.nc),
                slice: first..k.min(first + blocking.kc),
                first_slice: slice == 0,
                last_slice: slice + 1 == blocking.slices,
            };
            // SAFETY: the place is inside the geometry; the join between the two calls orders the packed
            // panel before its readers.
            unsafe {
                run.pack_panel(&place);
                run.multiply(&place);
            }
        }
    }
}

impl<E: Element> Run<E>
where
    E::Sum: Kernels,
{
    unsafe fn pack_panel(&self, place: &Place) {
        let Blocking { columns, isa, pack_b, .. } = self.blocking;
        let strips = place.columns.len().div_ceil(columns);
        let b = self.product.geometry.b;
        let pack = |strip: usize, to: usize| {
            let first = place.columns.start + strip * columns;
            // SAFETY: the strip is inside B, and its place inside the panel belongs to it alone.
            unsafe {
                Pack {
                    source: self.product.b_at(place.slice.start, first),
                    lanes: columns.min(place.columns.end - first),
                    lane_stride: b.column,
                    steps: place.slice.len(),
                    step_stride: b.row,
                    to: self.panel.add(to * columns * place.slice.len()),
                    width: columns,
                }
                .run(isa);
            }
        };
        if pack_b {
            // A part of less than about 32 KiB is not worth a wake-up.
            let grain = (8192 / (place.slice.len() * columns)).max(1);
            let grain = if self.blocking.parts == 1 { strips } else { grain };
            parallel::split(strips, grain, |range| range.for_each(|strip| pack(strip, strip)));
        } else if !place.columns.len().is_multiple_of(columns) {
            pack(strips - 1, 0);
        }
    }

    unsafe fn multiply(&self, place: &Place) {
        let Blocking { parts, row_blocks, groups, columns, .. } = self.blocking;
        let strips = place.columns.len().div_ceil(columns);
        let next = AtomicUsize::new(0);
        parallel::fork(parts, |part| {
            let mut packed = usize::MAX;
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= row_blocks * groups {
                    return;
                }
                let (block, group) = (task / groups, task % groups);
                let rows = parallel::part_range(self.product.geometry.m, row_blocks, block);
                // SAFETY: each part packs into its own block; tasks write disjoint elements of C.
                unsafe {
                    if self.blocking.pack_a && packed != block {
                        self.pack_rows(place, rows.clone(), part);
                        packed = block;
                    }
                    for tile in 0..self.tiles(&rows) {
                        let strips = parallel::part_range(strips, groups, group);
                        self.multiply_tiles(place, &rows, tile, strips, part);
                    }
                }
            }
        });
    }

    fn tiles(&self, rows: &Range<usize>) -> usize {
        rows.len().div_ceil(self.blocking.rows)
    }

    unsafe fn pack_rows(&self, place: &Place, rows: Range<usize>, part: usize) {
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
        place: &Place,
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
        // SAFETY: packed tiles are where `pack_rows` put them; unpacked A (only where `E` is its own sum) is
        // inside the operand.
        let (a, a_row, a_step) = unsafe {
            if pack_a {
                let block = part * self.blocking.block_len() + tile_rows.start * depth;
                (self.blocks.add(block).cast_const(), 1, height as isize)
            } else {
                let first = self.product.a_at(row, place.slice.start).cast::<E::Sum>();
                (first, self.product.geometry.a.row, self.product.geometry.a.column)
            }
        };
        for strip in strips {
            let column = place.columns.start + strip * columns;
            let whole = column + columns <= place.columns.end;
            // SAFETY: a packed strip is in the panel, the unpacked one has all its columns inside B; the
            // tile's rows and columns are inside C and belong to this task.
            unsafe {
                let (b, b_step) = if pack_b {
                    (self.panel.add(strip * columns * depth).cast_const(), columns as isize)
                } else if whole {
                    let b = self.product.b_at(place.slice.start, column).cast::<E::Sum>();
                    (b, self.product.geometry.b.row)
                } else {
                    (self.panel.0.cast_const(), columns as isize)
                };
                let (c, c_row) = (std::ptr::null_mut(), 0);
                let (alpha, beta) = (E::Sum::ONE, E::Sum::ZERO);
                let operands =
                    Tile { k: depth, a, a_row, a_step, b, b_step, c, c_row, alpha, beta };
                self.finish_tile(place, (row, column), height, kernel, operands);
            }
        }
    }

    /// Runs the inner kernel into C itself, into the kept sums, or into a scratch tile, and from there into C.
    unsafe fn finish_tile(
        &self,
        place: &Place,
        (row, column): (usize, usize),
        height: usize,
        kernel: TileFn<E::Sum>,
        mut operands: Tile<E::Sum>,
    ) {
        let Blocking { columns, nc, keeps_sums, .. } = self.blocking;
        let width = columns.min(place.columns.end - column);
        let (one, zero) = (E::Sum::ONE, E::Sum::ZERO);
        let c = self.product.geometry.c;
        // SAFETY: C is written directly only where the tile is whole, its columns contiguous and its elements
        // sums; kept sums have whole strips; the scratch tile has room for the largest tile.
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
