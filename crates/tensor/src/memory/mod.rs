//! PyTorch's memory functions for every device, the CPU included: what is in use, the peak, where it came from.

use plimsoll_core::Device;
use plimsoll_memory::{Arena, Stats};

use crate::device;

/// The arena (allocator and ledger) of a device.
pub fn arena(device: Device) -> &'static Arena {
    device::entry(device).arena()
}

/// Bytes in tensors and workspaces now, rounded as the allocator rounds.
pub fn memory_allocated(device: Device) -> usize {
    usize::try_from(memory_stats(device).allocated_bytes.all.current).unwrap_or(0)
}

/// The highest [`memory_allocated`] since the start or the last reset.
pub fn max_memory_allocated(device: Device) -> usize {
    usize::try_from(memory_stats(device).allocated_bytes.all.peak).unwrap_or(0)
}

/// Bytes held from the system, in use or cached.
pub fn memory_reserved(device: Device) -> usize {
    usize::try_from(memory_stats(device).reserved_bytes.all.current).unwrap_or(0)
}

/// The highest [`memory_reserved`] since the start or the last reset.
pub fn max_memory_reserved(device: Device) -> usize {
    usize::try_from(memory_stats(device).reserved_bytes.all.peak).unwrap_or(0)
}

/// All statistics of a device.
pub fn memory_stats(device: Device) -> Stats {
    arena(device).stats()
}

/// Makes the present figures the new peaks. Scoped peaks are not disturbed.
pub fn reset_peak_memory_stats(device: Device) {
    arena(device).reset_peak_stats();
}

/// Gives cached memory back to the system; returns how many bytes.
pub fn empty_cache(device: Device) -> usize {
    arena(device).empty_cache()
}
