//! How a general product is cut into blocks that fit the caches: chosen from the shape and the
//! number of threads alone, so that its workspace is known without running. `blocked.rs` runs it.

use std::any::TypeId;

use super::geometry::Geometry;
use super::micro::{Kernels, Micro};
use plimsoll_engine::pack::Factor;
use plimsoll_engine::simd::Isa;

/// How a product is cut. All counts are of elements unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocking {
    pub(super) isa: Isa,
    /// Threads at most.
    pub(super) parts: usize,
    /// Panels that n is cut into.
    pub(super) panels: usize,
    /// Whether threads take whole panels, or share each.
    pub(super) own_panels: bool,
    /// Depth of a slice of k.
    pub(super) kc: usize,
    /// Slices of k.
    pub(super) slices: usize,
    /// Width of a panel, whole strips.
    pub(super) nc: usize,
    /// Row blocks that m is cut into, evenly.
    pub(super) row_blocks: usize,
    /// Rows of the largest block.
    pub(super) mc: usize,
    /// Column groups that a panel's strips are cut into, evenly.
    pub(super) groups: usize,
    /// Columns of a tile.
    pub(super) columns: usize,
    /// Rows of the tallest tile.
    pub(super) rows: usize,
    /// Whether A and B are packed, or read where they are.
    pub(super) pack_a: bool,
    pub(super) pack_b: bool,
    /// Whether sums wait in the workspace between slices, because C cannot hold them unrounded.
    pub(super) keeps_sums: bool,
}

/// Bytes of a slice of k, at most: deep enough that C is seldom revisited. Tuned on Sapphire
/// Rapids, as are the next two.
const SLICE_BYTES: usize = 512 * 4;
/// Bytes of a panel of B, at most: it stays in a second-level cache of 2 MiB.
const PANEL_BYTES: usize = 1 << 20;
/// Rows of a block, at most.
const BLOCK_ROWS: usize = 84;
/// Strips that a thread's panel must have, so that packing A once for each panel is cheap against
/// them.
const OWN_STRIPS: usize = 4;
/// Where sums wait in the workspace, panels are this narrow, so that they take little of it.
const NARROW_PANEL: usize = 512;

impl Blocking {
    pub(super) fn new<E: Factor>(g: &Geometry, isa: Isa, parts: usize) -> Blocking
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
        let own_panels = parts > 1 && !keeps_sums && g.n / parts >= OWN_STRIPS * columns;
        let panels = if own_panels { panels.next_multiple_of(parts) } else { panels };
        let nc = g.n.div_ceil(panels).next_multiple_of(columns);
        let panels = g.n.div_ceil(nc);
        // An unpacked operand must be used few times, and be small enough that its rows share no
        // cache sets or pages.
        let (short, panel) = (plain && g.k <= 256, nc.min(g.n));
        let pack_a = !(short && g.m * g.k <= 256 * 256 && panel <= 4 * columns);
        // Rows of B that are close together stay in the second-level cache as well as a packed
        // panel does.
        let tiles = if g.b.row.unsigned_abs() <= 128 { 10 } else { 4 };
        let small = short && g.m <= tiles * rows && g.m * g.k <= 128 * 256;
        let pack_b = !(small && g.b.column == 1);
        let blocks = g.m.div_ceil(BLOCK_ROWS);
        let row_blocks = if parts == 1 || own_panels {
            blocks
        } else {
            // Several tasks a thread, so that a thread that comes late is made up for.
            blocks.max((2 * parts).min(g.m.div_ceil(2 * rows))).next_multiple_of(parts).min(g.m)
        };
        let strips = nc / columns;
        let groups = if parts == 1 || own_panels || row_blocks >= 2 * parts {
            1
        } else {
            (4 * parts).div_ceil(row_blocks).min(strips)
        };
        let mc = g.m.div_ceil(row_blocks);
        Blocking {
            isa,
            parts: parts.min(if own_panels { panels } else { row_blocks * groups }),
            panels,
            own_panels,
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

    /// Sums in a packed panel of B. Where B is not packed, one strip: the last one, which a kernel
    /// that reads whole vectors would run over.
    pub(super) fn panel_len(&self) -> usize {
        self.kc * if self.pack_b { self.nc } else { self.columns }
    }

    /// Panels that are in use at once.
    pub(super) fn panels_at_once(&self) -> usize {
        if self.own_panels { self.parts } else { 1 }
    }

    /// Sums in one thread's packed row block, a whole number of cache lines.
    pub(super) fn block_len(&self) -> usize {
        if self.pack_a { (self.mc * self.kc).next_multiple_of(16) } else { 0 }
    }

    fn kept_len(&self, g: &Geometry) -> usize {
        if self.keeps_sums { g.m * self.nc } else { 0 }
    }

    pub(super) fn workspace_bytes<E: Factor>(&self, g: &Geometry) -> usize {
        let panels = self.panels_at_once() * self.panel_len();
        (panels + self.parts * self.block_len() + self.kept_len(g)) * size_of::<E::Sum>()
    }
}

/// Whether elements are summed in their own type.
pub(super) fn is_own_sum<E: Factor>() -> bool {
    TypeId::of::<E>() == TypeId::of::<E::Sum>()
}
