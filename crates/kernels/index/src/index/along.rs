//! gather and the scatters: an index tensor says, for each of its elements, where along one
//! dimension of another tensor to read, to write, or to combine with what is there.
//!
//! Negative indices are errors here, as in PyTorch.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use plimsoll_core::{Error, Layout, Result};

use super::out_of_range;
use plimsoll_engine::along_dim::Lines;
use plimsoll_engine::input_dtype;
use plimsoll_engine::iterate::{self, GRAIN, Tile};
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::match_dtype;
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::{CpuLaunch, Meta, Operand};
use plimsoll_kernels_copy::copy::copy_between;

/// A tensor's addresses in the shape of an index tensor: along `dim` all the same, for the index to
/// move.
fn addresses(
    launch: &CpuLaunch<'_>,
    of: &Operand<'_>,
    shape: &[usize],
    dim: usize,
) -> Result<Meta> {
    let fits = of.shape().len() == shape.len()
        && (0..shape.len()).all(|d| d == dim || shape[d] <= of.shape()[d]);
    if !fits || dim >= shape.len().max(1) {
        return Err(Error::shape(
            launch.operation,
            format!(
                "an index of shape {shape:?} along dimension {dim} does not fit shape {:?}: other sizes \
                 may not be larger",
                of.shape()
            ),
        ));
    }
    let mut strides = of.layout().strides().to_vec();
    if let Some(stride) = strides.get_mut(dim) {
        *stride = 0;
    }
    Ok(Meta { layout: Layout::strided(shape, &strides, 0)?, dtype: of.dtype() })
}

/// The size and byte stride of `dim`; a zero-dimensional tensor has one element.
fn extent(of: &Operand<'_>, dim: usize) -> (usize, usize) {
    let size = of.shape().get(dim).copied().unwrap_or(1);
    let stride = of.layout().strides().get(dim).copied().unwrap_or(0);
    (size, stride * of.dtype().size_bytes())
}

/// [x, index] -> x at `index` along `dim`; the output has the index's shape.
pub fn gather(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    let [out, input, index] = operands::<3>(launch)?;
    check::<i64>(launch, &index)?;
    if out.shape() != index.shape() || out.dtype() != input.dtype() {
        return Err(Error::shape(launch.operation, "the output has the index's shape"));
    }
    if index.layout().numel() == 0 {
        return Ok(());
    }
    let meta = addresses(launch, &input, index.shape(), dim)?;
    // SAFETY: every address of this operand plus an index below the size, times the stride, is an
    // element of the input; the operand itself is never read through.
    let base = unsafe { Operand::new(input.first_byte(), &meta) };
    let (size, stride) = extent(&input, dim);
    let bad = BadIndex::default();
    let operands = [out, index, base];
    match input.dtype().size_bytes() {
        1 => iterate::run_addresses(operands, |tile| gather_tile::<u8>(tile, size, stride, &bad)),
        2 => iterate::run_addresses(operands, |tile| gather_tile::<u16>(tile, size, stride, &bad)),
        4 => iterate::run_addresses(operands, |tile| gather_tile::<u32>(tile, size, stride, &bad)),
        _ => iterate::run_addresses(operands, |tile| gather_tile::<u64>(tile, size, stride, &bad)),
    }
    match bad.into_lowest() {
        None => Ok(()),
        Some(index) => Err(out_of_range(launch.operation, index, dim, size)),
    }
}

fn gather_tile<T: Copy>(tile: &Tile<3>, size: usize, stride: usize, bad: &BadIndex) {
    for row in 0..tile.rows {
        let [out, index, base] = tile.row(row);
        let [to, step, across] = tile.inner;
        let width = size_of::<T>();
        if step == 0 && to == width && across == width && tile.len > 0 {
            // One index for a whole run (`index_select`): the run is copied at once.
            // SAFETY: as below, for `tile.len` neighbours.
            unsafe {
                let at = *index.cast::<i64>();
                if at as u64 >= size as u64 {
                    bad.note(at);
                    continue;
                }
                let from = base.byte_add(at as usize * stride).cast::<T>();
                out.cast::<T>().copy_from_nonoverlapping(from, tile.len);
            }
            continue;
        }
        for i in 0..tile.len {
            // SAFETY: the tile covers elements of the output and of the index (the engine's
            // promise); an index below `size` from an address of `base` is an element of the input
            // (`gather`).
            unsafe {
                let at = *index.byte_add(i * step).cast::<i64>();
                if at as u64 >= size as u64 {
                    bad.note(at);
                    continue;
                }
                let from = base.byte_add(i * across + at as usize * stride).cast::<T>();
                *out.byte_add(i * to).cast::<T>() = *from;
            }
        }
    }
}

/// The lowest index out of range that any thread met. Every `i64` can be one, so none can stand for
/// "none".
struct BadIndex {
    lowest: AtomicI64,
    found: AtomicBool,
}

impl Default for BadIndex {
    fn default() -> BadIndex {
        BadIndex { lowest: AtomicI64::new(i64::MAX), found: AtomicBool::new(false) }
    }
}

impl BadIndex {
    #[cold]
    fn note(&self, index: i64) {
        self.lowest.fetch_min(index, Ordering::Relaxed);
        self.found.store(true, Ordering::Relaxed);
    }

    fn into_lowest(self) -> Option<i64> {
        self.found.into_inner().then(|| self.lowest.into_inner())
    }
}

/// Lines side by side that one thread adds into.
const COLUMNS: usize = 256;

/// What happens to an element that the index names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// It becomes the source's; of several the last.
    Replace,
    /// It and the source's are added.
    Add,
    /// They are multiplied.
    Multiply,
    /// The smaller stays; a NaN before all.
    Least,
    /// The larger stays; a NaN before all.
    Greatest,
}

impl Combine {
    #[inline(always)]
    fn of<T: Number>(self, old: T, new: T) -> T {
        match self {
            Combine::Replace => new,
            Combine::Add => old.plus(new),
            Combine::Multiply => old.times(new),
            Combine::Least if old.is_nan() || old.below(new) => old,
            Combine::Greatest if old.is_nan() || new.below(old) => old,
            Combine::Least | Combine::Greatest => new,
        }
    }
}

/// [x, index, source] -> x with `source` combined in at `index` along `dim`. The output is x itself
/// (in place) or becomes a copy of it. What falls on one element happens in the order of the index.
/// An index out of range is an error, and a tensor that was to be changed in place is as it was.
pub fn scatter(launch: &CpuLaunch<'_>, dim: usize, combine: Combine) -> Result<()> {
    let [out, input, index, source] = operands::<4>(launch)?;
    check::<i64>(launch, &index)?;
    let same = out.first_byte() == input.first_byte() && out.layout() == input.layout();
    // An index without elements may have any shape.
    if index.layout().numel() == 0 {
        return if same { Ok(()) } else { copy_between(launch.operation, out, input) };
    }
    let (size, stride) = extent(&out, dim);
    let to = addresses(launch, &out, index.shape(), dim)?;
    // The source may be larger than the index; only the index's part of it is read.
    let mut from = addresses(launch, &source, index.shape(), dim)?;
    let whole = source.shape().get(dim).copied().unwrap_or(1);
    if index.shape().get(dim).copied().unwrap_or(1) > whole || source.dtype() != out.dtype() {
        return Err(Error::shape(
            launch.operation,
            format!(
                "an index of shape {:?} is larger than its source {:?}",
                index.shape(),
                source.shape()
            ),
        ));
    }
    from.layout = Layout::strided(index.shape(), source.layout().strides(), 0)?;
    if same {
        check_indices(launch, &index, dim, size)?;
    } else {
        copy_between(launch.operation, out, input)?;
    }
    // SAFETY: as in `gather` for the output's addresses; the source's part is inside it as just
    // checked.
    let (to, from) =
        unsafe { (Operand::new(out.first_byte(), &to), Operand::new(source.first_byte(), &from)) };
    // The output first: threads go through its memory in order.
    let lines = Lines::new(launch, &[to, index, from], dim)?;
    let job = Scatter { lines: &lines, size, stride, bad: BadIndex::default() };
    match_dtype!(input_dtype(launch)?, T => match combine {
        // The usual one has a loop that knows what it does.
        Combine::Add => job.run::<T>(|old, new| old.plus(new), true),
        other => job.run::<T>(move |old, new| other.of(old, new), false),
    });
    match job.bad.into_lowest() {
        None => Ok(()),
        Some(index) => Err(out_of_range(launch.operation, index, dim, size)),
    }
}

struct Scatter<'a> {
    /// The output's addresses, the index, the source.
    lines: &'a Lines<3>,
    size: usize,
    stride: usize,
    bad: BadIndex,
}

impl Scatter<'_> {
    fn run<T: Number>(&self, combine: impl Fn(T, T) -> T + Copy + Sync, adds: bool) {
        let lines = self.lines;
        if lines.count == 0 || lines.len == 0 {
            return;
        }
        let (width, across) = lines.across();
        let blocks = width.div_ceil(COLUMNS);
        let groups = lines.count / width;
        let one_index = adds && across == [size_of::<T>(), 0, size_of::<T>()];
        // Whichever way the index lies together; a line's own order stays.
        let line_by_line = lines.strides[1] <= across[1] || width == 1;
        parallel::split(groups * blocks, (GRAIN / (lines.len * COLUMNS)).max(1), |units| {
            for unit in units {
                let first = unit % blocks * COLUMNS;
                let pointers = lines.group(unit / blocks, first);
                let columns = COLUMNS.min(width - first);
                // SAFETY: the steps stay within this unit's lines, which no other unit writes.
                unsafe {
                    if one_index {
                        self.add_runs::<T>(pointers, columns);
                    } else if line_by_line {
                        for column in 0..columns {
                            let start = |i: usize| pointers[i].wrapping_add(column * across[i]);
                            let starts = [start(0), start(1), start(2)];
                            self.walk(starts, lines.strides, lines.len, combine);
                        }
                    } else {
                        for row in 0..lines.len {
                            let start = |i: usize| pointers[i].wrapping_add(row * lines.strides[i]);
                            let starts = [start(0), start(1), start(2)];
                            self.walk(starts, across, columns, combine);
                        }
                    }
                }
            }
        });
    }

    /// `count` elements of the index, `steps` bytes apart in each operand.
    ///
    /// # Safety
    /// They are elements of the index and the source, and this thread alone writes their targets.
    #[inline(always)]
    unsafe fn walk<T: Number>(
        &self,
        [to, index, source]: [*mut u8; 3],
        steps: [usize; 3],
        count: usize,
        combine: impl Fn(T, T) -> T,
    ) {
        for i in 0..count {
            // SAFETY: the caller's promise; an index below `size` from an address of the output is
            // an element of it.
            unsafe {
                let at = *index.add(i * steps[1]).cast::<i64>();
                if at as u64 >= self.size as u64 {
                    self.bad.note(at);
                    continue;
                }
                let target = to.add(i * steps[0] + at as usize * self.stride).cast::<T>();
                *target = combine(*target, *source.add(i * steps[2]).cast::<T>());
            }
        }
    }

    /// One index for neighbouring lines: whole runs are added.
    ///
    /// # Safety
    /// As for `walk`, of `columns` neighbours.
    unsafe fn add_runs<T: Number>(&self, pointers: [*mut u8; 3], columns: usize) {
        for row in 0..self.lines.len {
            let at = |i: usize| pointers[i].wrapping_add(row * self.lines.strides[i]);
            // SAFETY: as in `walk`.
            unsafe {
                let index = *at(1).cast::<i64>();
                if index as u64 >= self.size as u64 {
                    self.bad.note(index);
                    continue;
                }
                let target = at(0).add(index as usize * self.stride).cast::<T>();
                let source = at(2).cast::<T>();
                for column in 0..columns {
                    let target = target.add(column);
                    *target = (*target).plus(*source.add(column));
                }
            }
        }
    }
}

/// Every index must be in `0..size`.
fn check_indices(
    launch: &CpuLaunch<'_>,
    index: &Operand<'_>,
    dim: usize,
    size: usize,
) -> Result<()> {
    let bad = BadIndex::default();
    // Only read, so by way of its addresses: an output might be written elsewhere first.
    iterate::run_addresses([*index], |tile| {
        for row in 0..tile.rows {
            let start = tile.row(row)[0];
            for i in 0..tile.len {
                // SAFETY: the tile covers elements of the index (the engine's promise).
                let at = unsafe { *start.byte_add(i * tile.inner[0]).cast::<i64>() };
                if at as u64 >= size as u64 {
                    bad.note(at);
                }
            }
        }
    });
    match bad.into_lowest() {
        None => Ok(()),
        Some(index) => Err(out_of_range(launch.operation, index, dim, size)),
    }
}
