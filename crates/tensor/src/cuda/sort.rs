//! Stable sorts along a dimension: short lines by a block each, long ones by [`Radix`], which other
//! families use as well to bring equal indices together.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::in_workspace::ALIGNMENT_BYTES;
use super::lines::Lines;
use super::tail::code;
use super::{Arguments, CudaLaunch, NOTHING, address, whole};

/// The longest line that a block sorts in shared memory.
pub(super) const SHORT: usize = 2048;
/// Pairs that a block of the radix sort brings to their places at a time.
const TILE: usize = 2048;
/// The most parts of a row.
const MOST_PARTS: usize = 1024;
/// Places of a digit.
const PLACES: usize = 256;
const THREADS: u32 = 256;

/// A stable radix sort of rows of keys, each with the position that it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Radix {
    pub(super) rows: usize,
    /// Keys of a row, fewer than 2^32.
    pub(super) len: usize,
    /// Low bits of the keys that may differ. Keys are u32 if these are at most 32, else u64.
    pub(super) bits: usize,
    /// Whether positions are wanted.
    pub(super) positions: bool,
}

/// What a sort leaves in its workspace: addresses of rows in order, the first of each two; but if
/// it was told which bits differ, that tells on the GPU (`sort_gather`).
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    /// The keys, of the width that went in.
    pub(super) keys: [usize; 2],
    /// The position (u32) in its row that each came from.
    pub(super) positions: [usize; 2],
    differing: Argument,
}

impl Radix {
    /// Sorts elements of `dtype`, all of whose bits count.
    fn of(dtype: DType, rows: usize, len: usize) -> Radix {
        Radix { rows, len, bits: 8 * dtype.size_bytes(), positions: true }
    }

    pub(super) fn key_bytes(self) -> usize {
        if self.bits <= 32 { 4 } else { 8 }
    }

    /// The kernels' name for the keys' type.
    pub(super) fn key_type(self) -> &'static str {
        if self.key_bytes() == 4 { "u32" } else { "u64" }
    }

    /// Elements of a part, and parts of a row.
    fn parts(self) -> (usize, usize) {
        let tiles = self.len.div_ceil(TILE).max(1);
        let span = tiles.div_ceil(MOST_PARTS) * TILE;
        (span, self.len.div_ceil(span).max(1))
    }

    /// Bytes of each buffer: keys, other keys, positions, other positions, counts, their sums, and
    /// the bits that differ.
    fn buffers(self) -> [usize; 7] {
        let (n, (_, parts)) = (self.rows * self.len, self.parts());
        let (keys, positions) = (n * self.key_bytes(), if self.positions { n * 4 } else { 0 });
        let sums = self.rows * PLACES * 4;
        [keys, keys, positions, positions, sums * parts, sums, 8]
            .map(|bytes| bytes.next_multiple_of(ALIGNMENT_BYTES))
    }

    /// Bytes that [`Radix::run`] works in.
    pub(super) fn workspace_bytes(self) -> usize {
        self.buffers().iter().sum()
    }

    /// Where a caller may tell which bits differ among keys of 64 bits: whole numbers are seldom
    /// large, and passes over digits that all share are left out.
    fn differing(self, base: usize) -> Argument {
        let before: usize = self.buffers()[..6].iter().sum();
        if self.key_bytes() == 8 { whole(base + before) } else { NOTHING }
    }

    /// Sorts in the workspace at `base`, which starts with the rows of keys, one after the other.
    pub(super) fn run(self, launch: &CudaLaunch<'_>, base: usize) -> Result<Sorted> {
        self.run_told(launch, base, NOTHING)
    }

    /// Writes the keys of elements to `base` and sorts them. `from` says where the elements are:
    /// the lines, the step along one, the direction, the dtype and the address.
    fn sort_elements(
        self,
        launch: &CudaLaunch<'_>,
        base: usize,
        from: [Argument; 5],
    ) -> Result<Sorted> {
        let differing = self.differing(base);
        if self.key_bytes() == 8 {
            let grid = Grid { blocks: (1, 1, 1), threads: 32, shared_bytes: 0 };
            launch.run(
                &source_files::SORT,
                "sort_reset",
                grid,
                std::slice::from_ref(&differing),
            )?;
        }
        let sizes = [whole(self.rows), whole(self.len)];
        let to = [whole(base), differing.clone()];
        let arguments = [&sizes[..], &from, &to].concat();
        let kernel = ("sort_keys", self.key_type());
        let grid = launch.grid(self.rows * self.len, 4);
        launch.run(&source_files::SORT, kernel, grid, &arguments)?;
        self.run_told(launch, base, differing)
    }

    /// As [`Radix::run`]; `differing` is nothing, or [`Radix::differing`].
    fn run_told(self, launch: &CudaLaunch<'_>, base: usize, differing: Argument) -> Result<Sorted> {
        let sizes = self.buffers();
        let buffer = |index: usize| base + sizes[..index].iter().sum::<usize>();
        let (span, parts) = self.parts();
        let width = self.key_type();
        let source = &source_files::SORT;
        let blocks = |jobs: usize| Grid {
            blocks: (jobs.clamp(1, 1 << 20) as u32, 1, 1),
            threads: THREADS,
            shared_bytes: 0,
        };
        let [keys, other_keys, mut positions, mut other_positions, counts, sums] =
            [0, 1, 2, 3, 4, 5].map(|index| whole(buffer(index)));
        if !self.positions {
            [positions, other_positions] = [NOTHING, NOTHING];
        }
        let shape = [whole(self.rows), whole(self.len), whole(parts), whole(span)];
        let passes = self.bits.div_ceil(8).max(1);
        for pass in 0..passes {
            let turn = [Argument::I32(8 * pass as i32), differing.clone()];
            let both = [keys.clone(), other_keys.clone()];
            let jobs = self.rows * parts;
            let arguments = [&shape[..], &turn, &both, std::slice::from_ref(&counts)].concat();
            launch.run(source, ("sort_count", width), blocks(jobs), &arguments)?;
            let digits = self.rows * PLACES;
            let of_digits = [whole(digits), whole(parts)];
            let found = [counts.clone(), sums.clone()];
            let arguments = [&of_digits[..], &turn, &found].concat();
            launch.run(source, "sort_sums", blocks(digits.div_ceil(8)), &arguments)?;
            let places = [positions.clone(), other_positions.clone()];
            let arguments = [&shape[..], &turn, &both, &places, &found].concat();
            launch.run(source, ("sort_place", width), blocks(jobs), &arguments)?;
        }
        let (mut keys, mut positions) = ([buffer(0), buffer(1)], [buffer(2), buffer(3)]);
        if matches!(differing, Argument::U64(0)) && passes % 2 == 1 {
            keys.reverse();
            positions.reverse();
        }
        Ok(Sorted { keys, positions, differing })
    }
}

/// How many lines `x` has along `dim`, and how long they are.
pub(super) fn lines_of(x: &Meta, dim: usize) -> (usize, usize) {
    let len = x.shape().get(dim).copied().unwrap_or(1);
    (x.layout.numel().checked_div(len).unwrap_or(0), len)
}

/// Bytes that [`sort`] works in.
pub(crate) fn sort_workspace_bytes(x: &Meta, dim: usize) -> usize {
    match lines_of(x, dim) {
        (_, ..=SHORT) => 0,
        (rows, len) => Radix::of(x.dtype, rows, len).workspace_bytes(),
    }
}

/// Input [x]; outputs [values, indices].
pub(crate) fn sort(launch: &CudaLaunch<'_>, dim: usize, descending: bool) -> Result<()> {
    let kept = lines_of(launch.inputs[0].meta(), dim).1;
    sort_first(launch, dim, descending, kept)
}

/// Sorts lines and writes the first `kept` elements of each.
pub(super) fn sort_first(
    launch: &CudaLaunch<'_>,
    dim: usize,
    descending: bool,
    kept: usize,
) -> Result<()> {
    let operands = [&launch.inputs[0], &launch.outputs[0], &launch.outputs[1]];
    sort_lines(launch, operands, dim, descending, kept)
}

/// As [`sort_first`]; operands [x, values, indices].
fn sort_lines(
    launch: &CudaLaunch<'_>,
    [x, values, indices]: [&Operand<'_>; 3],
    dim: usize,
    descending: bool,
    kept: usize,
) -> Result<()> {
    launch.check_dtypes(x.dtype(), &[values])?;
    launch.check_dtypes(DType::I64, &[indices])?;
    let lines = Lines::new([x, values, indices], dim);
    if lines.count == 0 || lines.len == 0 || kept == 0 {
        return Ok(());
    }
    if lines.len > u32::MAX as usize {
        return Err(launch.unsupported("sorting lines of 2^32 elements and more"));
    }
    let outer = lines.outer.argument(launch.operation)?;
    let dtype = Argument::I32(code(x.dtype()) as i32);
    let direction = Argument::I32(i32::from(descending));
    let mut arguments: Arguments =
        smallvec![whole(lines.count), whole(lines.len), whole(kept), outer.clone()];
    arguments.extend(lines.steps.map(whole));
    if lines.len <= SHORT {
        let room = lines.len.next_power_of_two();
        arguments.extend([direction, Argument::I32(room as i32), dtype]);
        arguments.extend([x, values, indices].map(address));
        let grid = Grid {
            blocks: (lines.count.min(1 << 20) as u32, 1, 1),
            threads: (room as u32 / 2).clamp(32, 512),
            shared_bytes: 0,
        };
        return launch.run(&source_files::SORT, "sort_short", grid, &arguments);
    }
    let radix = Radix::of(x.dtype(), lines.count, lines.len);
    let base = launch.workspace.pointer().addr();
    let from = [outer, whole(lines.steps[0]), direction.clone(), dtype.clone(), address(x)];
    let sorted = radix.sort_elements(launch, base, from)?;
    arguments.extend([direction, dtype, address(x), sorted.differing]);
    arguments.extend(sorted.keys.into_iter().chain(sorted.positions).map(whole));
    arguments.extend([values, indices].map(address));
    let grid = launch.grid(lines.count * kept, 4);
    launch.run(&source_files::SORT, "sort_gather", grid, &arguments)
}

fn values_radix(x: &Meta) -> Radix {
    Radix { positions: false, ..Radix::of(x.dtype, 1, x.layout.numel()) }
}

/// Bytes that [`sort_values`] works in.
pub(crate) fn sort_values_workspace_bytes(x: &Meta) -> usize {
    match x.layout.numel() {
        // Positions that nobody asked for.
        len @ ..=SHORT => len * size_of::<i64>(),
        _ => values_radix(x).workspace_bytes(),
    }
}

/// Input [x], a contiguous line; output [its elements in order]. Of NaN and zeros, which have
/// several patterns, one stands for all.
pub(crate) fn sort_values(launch: &CudaLaunch<'_>) -> Result<()> {
    let (x, values) = (&launch.inputs[0], launch.contiguous_output()?);
    launch.check_dtypes(x.dtype(), &[values])?;
    let lines = Lines::new([x, values], 0);
    let base = launch.workspace.pointer();
    if lines.len <= SHORT {
        let meta = Meta::contiguous(x.shape(), DType::I64)?;
        // SAFETY: the workspace is this launch's own and has room for a position an element.
        let positions = unsafe { Operand::new(base, &meta) };
        return sort_lines(launch, [x, values, &positions], 0, false, lines.len);
    }
    if lines.len > u32::MAX as usize {
        return Err(launch.unsupported("sorting lines of 2^32 elements and more"));
    }
    let dtype = Argument::I32(code(x.dtype()) as i32);
    let from = [
        lines.outer.argument(launch.operation)?,
        whole(lines.steps[0]),
        Argument::I32(0),
        dtype.clone(),
        address(x),
    ];
    let sorted = values_radix(x.meta()).sort_elements(launch, base.addr(), from)?;
    let [keys, other_keys] = sorted.keys.map(whole);
    let arguments = [whole(lines.len), dtype, sorted.differing, keys, other_keys, address(values)];
    let grid = launch.grid(lines.len, 4);
    launch.run(&source_files::SORT, "sort_values", grid, &arguments)
}
