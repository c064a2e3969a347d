//! Rows over trailing dimensions of any layout, as contiguous memory: in place where they are
//! contiguous, otherwise by way of buffers in the launch's workspace.

use std::marker::PhantomData;

use plimsoll_core::{Error, Layout, Result};

use plimsoll_engine::Element;
use plimsoll_engine::generate::{Walk, load};
use plimsoll_engine::map::check;
use plimsoll_engine::{CpuLaunch, Meta, Operand, Workspace};

/// Buffers start at multiples of a cache line.
const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

/// The trailing `rank` dimensions of a layout, from offset 0.
fn trailing(layout: &Layout, rank: usize) -> Option<Layout> {
    let lead = layout.rank().checked_sub(rank)?;
    Layout::strided(&layout.shape()[lead..], &layout.strides()[lead..], 0).ok()
}

/// Bytes of a buffer for one row of `meta`, or 0 if its rows are contiguous.
pub(super) fn copy_bytes(meta: &Meta, rank: usize) -> usize {
    match trailing(&meta.layout, rank) {
        Some(row) if !row.is_contiguous() => padded(row.numel() * meta.dtype.size_bytes()),
        _ => 0,
    }
}

/// One operand as rows over its trailing dimensions.
#[derive(Debug)]
pub(super) struct RowSet<T> {
    first: *mut T,
    lead: Layout,
    row: Layout,
    dense: bool,
    /// Elements of a row.
    pub(super) len: usize,
    /// Rows.
    pub(super) count: usize,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl<T: Send> Send for RowSet<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for RowSet<T> {}

impl<T: Element> RowSet<T> {
    /// The rows of `operand` over its last `rank` dimensions.
    pub(super) fn new(
        launch: &CpuLaunch<'_>,
        operand: &Operand<'_>,
        rank: usize,
    ) -> Result<RowSet<T>> {
        check::<T>(launch, operand)?;
        let layout = operand.layout();
        let Some(row) = trailing(layout, rank) else {
            return Err(Error::shape(
                launch.operation,
                format!("shape {:?} has no {rank} trailing dimensions", layout.shape()),
            ));
        };
        let lead = layout.rank() - rank;
        let lead = Layout::strided(&layout.shape()[..lead], &layout.strides()[..lead], 0)?;
        Ok(RowSet {
            first: operand.first::<T>(),
            dense: row.is_contiguous(),
            len: row.numel(),
            count: lead.numel(),
            lead,
            row,
        })
    }

    /// Bytes of the buffer that [`RowSet::fetch`] and [`RowSet::place`] need.
    pub(super) fn copy_bytes(&self) -> usize {
        if self.dense { 0 } else { padded(self.len * size_of::<T>()) }
    }

    fn start(&self, row: usize) -> *mut T {
        self.first.wrapping_add(Walk::new(&self.lead, row).position())
    }

    /// Row `row` as contiguous elements, copied into `buffer` if it must be.
    ///
    /// # Safety
    /// `row` must be below `count`, the operand readable, and `buffer` hold [`RowSet::copy_bytes`].
    pub(super) unsafe fn fetch(&self, row: usize, buffer: *mut u8) -> *const T {
        let start = self.start(row);
        if self.dense {
            return start;
        }
        let buffer = buffer.cast::<T>();
        for (i, position) in Walk::new(&self.row, 0).take(self.len).enumerate() {
            // SAFETY: the caller vouches for the row and the buffer.
            unsafe { *buffer.add(i) = *start.add(position) };
        }
        buffer
    }

    /// Where to write row `row` contiguously: in place, or `buffer`, which [`RowSet::put_back`]
    /// stores.
    pub(super) fn place(&self, row: usize, buffer: *mut u8) -> *mut T {
        if self.dense { self.start(row) } else { buffer.cast() }
    }

    /// Stores a row that was written where [`RowSet::place`] said.
    ///
    /// # Safety
    /// `row` must be below `count`, the operand writable, and `from` what `place` gave, written in
    /// full.
    pub(super) unsafe fn put_back(&self, row: usize, from: *const T) {
        if self.dense {
            return;
        }
        let start = self.start(row);
        for (i, position) in Walk::new(&self.row, 0).take(self.len).enumerate() {
            // SAFETY: the caller vouches for the row and the buffer.
            unsafe { *start.add(position) = *from.add(i) };
        }
    }
}

/// A pointer that parts of one fork may read through; null if there is nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<T>(*const T);

// SAFETY: only read from, under the launch's claim.
unsafe impl<T: Sync> Send for Whole<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for Whole<T> {}

impl<T> Whole<T> {
    /// The elements, or null.
    pub(super) fn get(&self) -> *const T {
        self.0
    }
}

/// Cuts a launch's workspace into buffers.
#[derive(Debug)]
pub(super) struct Scratch<'a> {
    workspace: Workspace,
    used: usize,
    operation: &'static str,
    launch: PhantomData<&'a ()>,
}

impl<'a> Scratch<'a> {
    /// All of the launch's workspace.
    pub(super) fn new(launch: &CpuLaunch<'a>) -> Scratch<'a> {
        let (workspace, operation) = (launch.workspace, launch.operation);
        Scratch { workspace, used: 0, operation, launch: PhantomData }
    }

    /// `bytes` bytes, 64-byte aligned.
    pub(super) fn take(&mut self, bytes: usize) -> Result<*mut u8> {
        let start = self.used;
        self.used += padded(bytes);
        if self.used > self.workspace.bytes() {
            return Err(Error::invalid_argument(format!(
                "the kernel needs {} bytes of workspace, but was launched with {}",
                self.used,
                self.workspace.bytes()
            ))
            .in_operation(self.operation));
        }
        Ok(self.workspace.pointer().wrapping_add(start))
    }

    /// All of an operand as contiguous elements, copied if it must be; null for none.
    pub(super) fn whole<T: Element>(
        &mut self,
        launch: &CpuLaunch<'_>,
        operand: Option<&Operand<'_>>,
        len: usize,
    ) -> Result<Whole<T>> {
        let Some(operand) = operand else { return Ok(Whole(std::ptr::null())) };
        check::<T>(launch, operand)?;
        if operand.layout().numel() != len {
            return Err(Error::shape(
                launch.operation,
                format!("shape {:?} does not have the {len} elements of a row", operand.shape()),
            ));
        }
        if operand.layout().is_contiguous() {
            return Ok(Whole(operand.first::<T>()));
        }
        let buffer = self.take(len * size_of::<T>())?.cast::<T>();
        // SAFETY: the buffer is this call's alone and was just measured; the input has `len`
        // elements.
        unsafe { load(*operand, 0, std::slice::from_raw_parts_mut(buffer, len)) };
        Ok(Whole(buffer))
    }

    /// `count` slots of buffers of these sizes.
    pub(super) fn slots<const N: usize>(
        &mut self,
        count: usize,
        sizes: [usize; N],
    ) -> Result<Slots<N>> {
        let each = sizes.iter().sum::<usize>();
        // Nothing is taken, and no workspace needed, where nothing has to be copied.
        let start = if each == 0 { std::ptr::null_mut() } else { self.take(count * each)? };
        Ok(Slots { start, sizes })
    }
}

/// Buffers for the parts of a fork.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots<const N: usize> {
    start: *mut u8,
    sizes: [usize; N],
}

// SAFETY: each part uses its own slot.
unsafe impl<const N: usize> Send for Slots<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Slots<N> {}

impl<const N: usize> Slots<N> {
    /// The buffers of slot `slot`.
    pub(super) fn slot(&self, slot: usize) -> [*mut u8; N] {
        let mut at = slot * self.sizes.iter().sum::<usize>();
        std::array::from_fn(|i| {
            let buffer = self.start.wrapping_add(at);
            at += self.sizes[i];
            buffer
        })
    }
}
