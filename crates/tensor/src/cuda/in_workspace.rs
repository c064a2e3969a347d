//! Contiguous copies of operands in the launch's workspace, for kernels that read row by row. How
//! many bytes that takes is a function of the layouts, so that a dry run takes the same.

use plimsoll_core::Result;
use plimsoll_kernels::{Meta, Operand, Workspace};

use super::{CudaLaunch, copy};

/// Copies start on multiples of this, as blocks of the arena do.
pub(super) const ALIGNMENT_BYTES: usize = 512;

/// Bytes of workspace that one copy of `meta` takes.
pub(super) fn copy_bytes(meta: &Meta) -> usize {
    (meta.layout.numel() * meta.dtype.size_bytes()).next_multiple_of(ALIGNMENT_BYTES)
}

/// Bytes of workspace for contiguous copies of those operands that are not contiguous.
pub(crate) fn copies_bytes(operands: &[&Meta]) -> usize {
    let scattered = operands.iter().filter(|meta| !meta.layout.is_contiguous());
    scattered.map(|meta| copy_bytes(meta)).sum()
}

/// What is left of a launch's workspace.
pub(super) struct Space {
    next: usize,
    left_bytes: usize,
}

impl Space {
    pub(super) fn new(workspace: &Workspace) -> Space {
        Space { next: workspace.pointer().addr(), left_bytes: workspace.bytes() }
    }

    /// Takes `bytes` off its start. The caller asked for them in its rule for workspaces.
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        debug_assert!(bytes <= self.left_bytes, "the workspace rule counts every copy");
        let start = self.next;
        self.next += bytes;
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        start
    }

    /// A copy of `operand`, broadcast to the contiguous `target`; returns its address.
    pub(super) fn copied(
        &mut self,
        launch: &CudaLaunch<'_>,
        operand: &Operand<'_>,
        target: &Meta,
    ) -> Result<usize> {
        let address = self.take(copy_bytes(target));
        // SAFETY: the workspace is this launch's alone and has room for the whole copy; the stream
        // may write it.
        let target = unsafe { Operand::new(address as *mut u8, target) };
        copy(launch, operand, &target)?;
        Ok(address)
    }

    /// The address of `operand`'s elements row by row: its own, or that of a copy.
    pub(super) fn contiguous(
        &mut self,
        launch: &CudaLaunch<'_>,
        operand: &Operand<'_>,
    ) -> Result<usize> {
        if operand.layout().is_contiguous() {
            return Ok(operand.first_byte().addr());
        }
        let target = Meta::contiguous(operand.shape(), operand.dtype())?;
        self.copied(launch, operand, &target)
    }
}
