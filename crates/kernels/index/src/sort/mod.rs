//! Sorting rows with the positions that the elements came from: stable, in PyTorch's order (NaN
//! greatest), ascending or descending, for every dtype.
//!
//! Like the products in `gemm`, a sort is planned from its sizes, so its workspace is known without
//! running, and the caller brings it. `key.rs` turns elements into numbers, `radix.rs` sorts one
//! row, `along.rs` brings tensors of any layout to it. `topk.rs` finds the greatest few without
//! sorting all, `runs.rs` what sorted elements have in common.

mod along;
mod key;
mod radix;
mod runs;
mod topk;

#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use plimsoll_core::DType;

pub use self::along::{sort, sort_along_workspace_bytes, sort_values, sort_values_workspace_bytes};
use self::key::{Narrow, Pair, SortKey, Wide};
use self::radix::{PLACES, SETS, SHORT, SortRow};
pub use self::runs::{count_runs, mode, row_order, runs};
pub use self::topk::{topk, topk_workspace_bytes};
use plimsoll_engine::Truth;
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;

/// The decided way to sort `rows` contiguous rows of `len` elements. It remembers the thread count
/// that it was made under.
///
/// ```
/// use plimsoll_core::DType;
/// use plimsoll_kernels_index::sort::SortPlan;
/// let plan = SortPlan::new(DType::F32, 1, 3);
/// let mut workspace = vec![0u64; plan.workspace_bytes() / 8];
/// let keys = [2.0f32, f32::NAN, -1.0];
/// let (mut sorted, mut positions) = ([0f32; 3], [0i64; 3]);
/// let (from, to) = (keys.as_ptr().cast(), sorted.as_mut_ptr().cast());
/// // SAFETY: the arrays have the plan's sizes, and the workspace its bytes.
/// unsafe { plan.run(from, to, positions.as_mut_ptr(), false, workspace.as_mut_ptr().cast()) };
/// assert_eq!((sorted[0], sorted[1], positions), (-1.0, 2.0, [2, 0, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortPlan {
    dtype: DType,
    rows: usize,
    len: usize,
    /// Threads at most: on rows of their own, or together on each row.
    parts: usize,
    together: bool,
}

/// Elements that pay for waking one more thread.
const GRAIN: usize = 4096;
/// Rows of at least this many elements may be sorted by several threads together.
const LONG: usize = 1 << 16;

impl SortPlan {
    /// Plans for the thread count in force.
    pub fn new(dtype: DType, rows: usize, len: usize) -> SortPlan {
        let work = rows.saturating_mul(len);
        let threads = parallel::threads().min((work / GRAIN).max(1));
        let together = threads > 1 && len >= LONG && rows < threads;
        let parts = if together { threads } else { threads.min(rows.max(1)) };
        SortPlan { dtype, rows, len, parts, together }
    }

    /// Bytes that [`SortPlan::run`] needs as workspace, a multiple of 64.
    pub fn workspace_bytes(&self) -> usize {
        let sets = if self.together { 1 } else { self.parts };
        if self.rows == 0 {
            return 0;
        }
        sets * self.buffers_bytes() + self.counts_bytes()
    }

    fn is_wide(&self) -> bool {
        self.dtype.size_bytes() == 8 || self.len > u32::MAX as usize
    }

    /// One row's pairs: wide ones need both buffers, narrow ones lie over the positions on every
    /// other pass.
    fn buffers_bytes(&self) -> usize {
        let pairs = if self.is_wide() { 2 * size_of::<Wide>() } else { size_of::<Narrow>() };
        (self.len * pairs).next_multiple_of(64)
    }

    fn counts_bytes(&self) -> usize {
        let sets = if self.together { self.parts } else { 0 };
        sets * SETS * size_of::<[usize; PLACES]>()
    }

    /// Sorts `keys_in` into `keys_out` and `positions_out`.
    ///
    /// # Safety
    /// - `keys_in` is readable, `keys_out` and `positions_out` writable for `rows * len` elements
    ///   of the plan's dtype and of `i64`; none overlaps another;
    /// - `workspace` is 8-byte aligned and holds [`SortPlan::workspace_bytes`].
    pub unsafe fn run(
        &self,
        keys_in: *const u8,
        keys_out: *mut u8,
        positions_out: *mut i64,
        descending: bool,
        workspace: *mut u8,
    ) {
        let call = Call { plan: *self, positions_out, descending, workspace };
        // SAFETY: the caller's contract; the dtype says what the pointers point to.
        unsafe {
            match self.dtype {
                DType::F32 => call.run::<f32>(keys_in.cast(), keys_out.cast()),
                DType::F64 => call.run::<f64>(keys_in.cast(), keys_out.cast()),
                DType::F16 => call.run::<f16>(keys_in.cast(), keys_out.cast()),
                DType::BF16 => call.run::<bf16>(keys_in.cast(), keys_out.cast()),
                DType::I64 => call.run::<i64>(keys_in.cast(), keys_out.cast()),
                DType::I8 => call.run::<i8>(keys_in.cast(), keys_out.cast()),
                DType::I16 => call.run::<i16>(keys_in.cast(), keys_out.cast()),
                DType::I32 => call.run::<i32>(keys_in.cast(), keys_out.cast()),
                DType::U8 => call.run::<u8>(keys_in.cast(), keys_out.cast()),
                DType::Bool => call.run::<Truth>(keys_in.cast(), keys_out.cast()),
            }
        }
    }
}

/// The arguments of one call that do not depend on the type.
struct Call {
    plan: SortPlan,
    positions_out: *mut i64,
    descending: bool,
    workspace: *mut u8,
}

impl Call {
    unsafe fn run<T: SortKey>(&self, keys_in: *const T, keys_out: *mut T) {
        if self.plan.len == 0 || self.plan.rows == 0 {
            return;
        }
        // SAFETY: the caller's contract.
        unsafe {
            if self.plan.is_wide() {
                self.rows::<T, Wide>(keys_in, keys_out);
            } else {
                self.rows::<T, Narrow>(keys_in, keys_out);
            }
        }
    }

    unsafe fn rows<T: SortKey, P: Pair>(&self, keys_in: *const T, keys_out: *mut T) {
        let SortPlan { rows, len, parts, together, .. } = self.plan;
        let (keys_in, keys_out) = (Shared(keys_in.cast_mut()), Shared(keys_out));
        let (positions, workspace) = (Shared(self.positions_out), Shared(self.workspace));
        let (plan, descending) = (self.plan, self.descending);
        let row = move |index: usize, set: usize| {
            let first = index * len;
            // SAFETY: the row is inside the arrays; each set of buffers has one user at a time.
            // Narrow pairs are as large as positions; rows that are sorted by comparison use the
            // first buffer alone.
            unsafe {
                let buffer = workspace.add(set * plan.buffers_bytes()).cast::<P>();
                let positions_out = positions.add(first);
                let second =
                    if plan.is_wide() { buffer.add(len) } else { positions_out.cast::<P>() };
                SortRow::<T, P> {
                    keys_in: keys_in.add(first),
                    keys_out: keys_out.add(first),
                    positions_out,
                    len,
                    descending,
                    buffers: [buffer, second],
                    pair: PhantomData,
                }
            }
        };
        // SAFETY: rows are disjoint; the histograms lie behind the buffers.
        unsafe {
            if together {
                let counts = workspace.add(plan.buffers_bytes()).cast();
                (0..rows).for_each(|index| row(index, 0).sort_together(parts, counts));
                return;
            }
        }
        // Several rows at a time where they are short, so that taking them costs little.
        let grain = (SHORT / len).max(1);
        let next = AtomicUsize::new(0);
        parallel::fork(parts, |part| {
            loop {
                let start = next.fetch_add(grain, Ordering::Relaxed);
                if start >= rows {
                    return;
                }
                for index in start..rows.min(start + grain) {
                    // SAFETY: this part has taken the row, and has its own buffers.
                    unsafe { row(index, part).sort() };
                }
            }
        });
    }
}

/// The workspace that [`sort_rows`] needs, under the thread count in force.
pub fn sort_workspace_bytes(dtype: DType, rows: usize, len: usize) -> usize {
    SortPlan::new(dtype, rows, len).workspace_bytes()
}

/// Sorts rows: [`SortPlan::run`] of a plan made here and now.
///
/// # Safety
/// As for [`SortPlan::run`], with the workspace that [`sort_workspace_bytes`] says under the same
/// thread count.
pub unsafe fn sort_rows(
    (dtype, rows, len): (DType, usize, usize),
    keys_in: *const u8,
    keys_out: *mut u8,
    positions_out: *mut i64,
    descending: bool,
    workspace: *mut u8,
) {
    let plan = SortPlan::new(dtype, rows, len);
    // SAFETY: the caller's contract is the same.
    unsafe { plan.run(keys_in, keys_out, positions_out, descending, workspace) };
}
