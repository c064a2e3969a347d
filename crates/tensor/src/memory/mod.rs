//! PyTorch's memory functions for every device, the CPU included: what is in use, the peak, where
//! it came from, limits, history and snapshots. All of them read or steer the device's [`Arena`];
//! `report.rs` puts its figures into words, `leak/` says what grows from step to step, `monitor/`
//! samples over time, `tracker.rs` counts from a reset on.

pub(crate) mod holders;
pub(crate) mod leak;
mod monitor;
mod report;
mod tracker;

use std::path::Path;
use std::sync::atomic::Ordering;

use plimsoll_core::{Device, Error, Result};
pub use plimsoll_memory::{
    Arena, BreakdownRow, HistoryLevel, Kind, ModulePath, Origin, OriginId, OutOfMemory, PeakScope,
    Phase, Share, Snapshot, Stats,
};

use crate::device;

pub use holders::{Holder, HolderKind, holders, track_holders};
pub use leak::LeakWatch;
pub use leak::graph_walk::{BehindTensor, GraphWalk, block_of};
pub use leak::growth_watch::{GrowthWatch, KeptBlock, KeptLine, Rebuilt};
pub use leak::shares::{HolderShare, live_by_holder};
pub use monitor::{MemoryMonitor, MemoryPeak, MemorySample, MemorySeries};
pub use plimsoll_watch::{Finding, GrowthKind, LeakReport, causes};
pub use report::memory_report;
pub use tracker::MemoryTracker;

/// The arena (allocator and ledger) of a device.
pub fn arena(device: Device) -> &'static Arena {
    device::entry(device).arena()
}

/// Who asked for a tensor's memory; `None` if it is not the runtime's own.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, memory};
/// let x = Tensor::zeros(&[4], DType::F32)?;
/// assert_eq!(memory::origin(&x).unwrap().get().operation, "zeros");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn origin(tensor: &crate::Tensor) -> Option<OriginId> {
    tensor.storage().origin()
}

/// Bytes in tensors and workspaces now, rounded as the allocator rounds.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let x = Tensor::zeros(&[1000], (DType::F32, own))?;
/// assert_eq!(memory::memory_allocated(own), 4096); // 4000 bytes, in steps of 512
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn memory_allocated(device: Device) -> usize {
    bytes(memory_stats(device).allocated_bytes.all.current)
}

/// The highest [`memory_allocated`] since the start or the last reset.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// drop(Tensor::zeros(&[256], (DType::F32, own))?);
/// assert_eq!(memory::max_memory_allocated(own), 1024);
/// memory::reset_peak_memory_stats(own);
/// assert_eq!(memory::max_memory_allocated(own), 0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn max_memory_allocated(device: Device) -> usize {
    bytes(memory_stats(device).allocated_bytes.all.peak)
}

/// Bytes held from the system, in use or cached.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// drop(Tensor::zeros(&[256], (DType::F32, own))?);
/// assert_eq!(memory::memory_reserved(own), 2 << 20); // a small segment, cached
/// # Ok::<(), Error>(())
/// ```
pub fn memory_reserved(device: Device) -> usize {
    bytes(memory_stats(device).reserved_bytes.all.current)
}

/// The highest [`memory_reserved`] since the start or the last reset.
pub fn max_memory_reserved(device: Device) -> usize {
    bytes(memory_stats(device).reserved_bytes.all.peak)
}

/// Bytes that tensors use and that somebody else owns (NumPy's, another framework's, a mapped
/// file's). They are in no other figure.
pub fn memory_external(device: Device) -> usize {
    bytes(memory_stats(device).external_bytes.current)
}

/// Bytes of a device's tensors that lie in host memory at the moment, because the device had no
/// room. They are in none of the device's other figures; the host memory itself is in the arenas
/// `cpu:pinned` and `cpu:spill` (see [`arenas`]).
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&plimsoll_memory::Configuration::parse("spill:true")?)?;
/// let x = Tensor::ones(&[256], (DType::F32, own))?;
/// device::take_back(&x, false);
/// assert_eq!((memory::memory_spilled(own), memory::memory_allocated(own)), (1024, 0));
/// assert_eq!(x.sum()?.item::<f32>()?, 256.0);
/// assert_eq!(memory::memory_spilled(own), 0);
/// # Ok::<(), Error>(())
/// ```
pub fn memory_spilled(device: Device) -> usize {
    device::entry(device).reclaimable().spilled_bytes().load(Ordering::Relaxed)
}

/// Every arena of the process: one for each device, then the host's others as far as anything was
/// ever in them, `cpu:pinned` (pinned host memory) and `cpu:spill` (tensors that their device had
/// no room for).
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, memory};
/// let x = Tensor::ones(&[1024], DType::F32)?.pin_memory()?;
/// let pinned = memory::arenas().into_iter().find(|arena| arena.name() == "cpu:pinned").unwrap();
/// assert!(pinned.stats().allocated_bytes.all.current >= 4096);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn arenas() -> Vec<&'static Arena> {
    let mut arenas = Vec::new();
    device::for_each(|entry| arenas.push(entry.arena()));
    let used = |arena: &&'static Arena| arena.stats().segment.all.allocated > 0;
    arenas.extend(host_arenas().filter(used));
    arenas
}

/// The host's arenas besides its own.
fn host_arenas() -> impl Iterator<Item = &'static Arena> {
    device::pinned_if_open().into_iter().chain([device::spill_arena()])
}

fn bytes(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// All statistics of a device, with PyTorch's keys.
///
/// ```
/// use plimsoll_tensor::{Device, memory};
/// let stats = memory::memory_stats(Device::cpu());
/// assert_eq!(stats.get("allocated_bytes.all.current"), Some(stats.allocated_bytes.all.current));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn memory_stats(device: Device) -> Stats {
    arena(device).stats()
}

/// The statistics as PyTorch's table; `abbreviated` leaves out the split by pools.
///
/// ```
/// use plimsoll_tensor::{Device, memory};
/// assert!(memory::memory_summary(Device::cpu(), true).contains("Allocated memory"));
/// ```
pub fn memory_summary(device: Device, abbreviated: bool) -> String {
    plimsoll_memory::memory_summary(&memory_stats(device), &device.to_string(), abbreviated)
}

/// Makes the present figures the new peaks. Scoped peaks are not disturbed.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// drop(Tensor::zeros(&[256], (DType::F32, own))?);
/// memory::reset_peak_memory_stats(own);
/// assert_eq!(memory::max_memory_allocated(own), 0);
/// # Ok::<(), Error>(())
/// ```
pub fn reset_peak_memory_stats(device: Device) {
    arena(device).reset_peak_stats();
}

/// Sets the counters that only grow (allocations, frees, retries) back to 0.
pub fn reset_accumulated_memory_stats(device: Device) {
    arena(device).reset_accumulated_stats();
}

/// Free and total bytes of a device's memory, as its driver or the system counts them, all
/// processes together; 0 where they cannot be told.
///
/// ```
/// use plimsoll_tensor::{Device, memory};
/// let (free, total) = memory::memory_info(Device::CPU)?;
/// assert!(free <= total);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn memory_info(device: Device) -> Result<(usize, usize)> {
    if device.is_cuda() && !device.is_dry() {
        return device::cuda_memory_info(device);
    }
    let room = arena(device).source().room();
    Ok((room.free_bytes.unwrap_or(0), room.total_bytes.unwrap_or(0)))
}

/// Watches the highest figures of a region of the program, from now until the guard is asked or
/// dropped. Regions nest, and no reset disturbs them.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let kept = Tensor::zeros(&[128], (DType::F32, own))?;
/// let scope = memory::peak_scope(own);
/// drop(Tensor::zeros(&[128], (DType::F32, own))?);
/// memory::reset_peak_memory_stats(own);
/// assert_eq!(scope.allocated_bytes_peak(), 1024);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn peak_scope(device: Device) -> PeakScope {
    arena(device).scoped_peak()
}

/// Live bytes of each kind (parameter, gradient, activation, ...), largest first.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// let w = Tensor::zeros(&[256], (DType::F32, own))?.mark_parameter();
/// let rows = memory::live_by_kind(own);
/// assert_eq!((rows[0].kind, rows[0].bytes), (memory::Kind::Parameter, 1024));
/// # drop(w);
/// # Ok::<(), Error>(())
/// ```
pub fn live_by_kind(device: Device) -> Vec<BreakdownRow> {
    sorted(arena(device).live_by_kind())
}

/// Live bytes of each origin (operation, line, module, phase), largest first.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let x = Tensor::zeros(&[256], (DType::F32, own))?;
/// let rows = memory::live_by_origin(own);
/// assert_eq!((rows[0].bytes, rows[0].origin.get().operation), (1024, "zeros"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn live_by_origin(device: Device) -> Vec<BreakdownRow> {
    sorted(arena(device).live_by_origin())
}

/// Bytes of each kind at the moment of the highest [`memory_allocated`], largest first.
pub fn peak_by_kind(device: Device) -> Vec<BreakdownRow> {
    sorted(arena(device).peak_by_kind())
}

/// Bytes of each origin at the moment of the highest [`memory_allocated`], largest first.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// drop(Tensor::zeros(&[256], (DType::F32, own))?);
/// assert_eq!(memory::peak_by_origin(own)[0].bytes, 1024);
/// # Ok::<(), Error>(())
/// ```
pub fn peak_by_origin(device: Device) -> Vec<BreakdownRow> {
    sorted(arena(device).peak_by_origin())
}

/// Live bytes of each module, largest first; the root is what is outside of all modules.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let _module = plimsoll_memory::enter_module("encoder");
/// let x = Tensor::zeros(&[256], (DType::F32, own))?;
/// let rows = memory::live_by_module(own);
/// assert_eq!((rows[0].part.to_string().as_str(), rows[0].bytes), ("encoder", 1024));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn live_by_module(device: Device) -> Vec<Share<ModulePath>> {
    arena(device).live_by_module()
}

/// Bytes of each module at the moment of the highest [`memory_allocated`], largest first.
pub fn peak_by_module(device: Device) -> Vec<Share<ModulePath>> {
    arena(device).peak_by_module()
}

/// Live bytes of each phase of training that made them, largest first.
///
/// ```
/// use plimsoll_memory::{Phase, enter_phase};
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let _phase = enter_phase(Phase::Evaluation);
/// let x = Tensor::zeros(&[256], (DType::F32, own))?;
/// let rows = memory::live_by_phase(own);
/// assert_eq!((rows[0].part, rows[0].bytes), (Phase::Evaluation, 1024));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn live_by_phase(device: Device) -> Vec<Share<Phase>> {
    arena(device).live_by_phase()
}

/// Bytes of each phase at the moment of the highest [`memory_allocated`], largest first.
pub fn peak_by_phase(device: Device) -> Vec<Share<Phase>> {
    arena(device).peak_by_phase()
}

fn sorted(mut rows: Vec<BreakdownRow>) -> Vec<BreakdownRow> {
    rows.retain(|row| row.bytes > 0);
    rows.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.count)));
    rows
}

/// Gives cached memory back to the system; returns how many bytes.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// drop(Tensor::zeros(&[256], (DType::F32, own))?);
/// assert_eq!(memory::empty_cache(own), 2 << 20);
/// # Ok::<(), Error>(())
/// ```
pub fn empty_cache(device: Device) -> usize {
    arena(device).empty_cache()
}

/// The share of the device's memory that may be reserved, from 0 to 1; returns the previous one.
///
/// ```
/// use plimsoll_tensor::{device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// assert_eq!(memory::set_per_process_memory_fraction(0.5, own)?, 1.0);
/// assert!(memory::set_per_process_memory_fraction(1.5, own).is_err());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn set_per_process_memory_fraction(fraction: f64, device: Device) -> Result<f64> {
    if !(0.0..=1.0).contains(&fraction) {
        return Err(Error::invalid_argument(format!(
            "the fraction must be from 0 to 1, and is {fraction}"
        ))
        .in_operation("set_per_process_memory_fraction"));
    }
    Ok(arena(device).set_memory_fraction(fraction))
}

/// The most bytes that may be reserved on a device; past it allocations fail. Returns the previous
/// limit.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// assert_eq!(memory::set_limit(own, Some(1 << 20)), None);
/// let error = Tensor::zeros(&[1 << 20], (DType::F32, own)).unwrap_err();
/// assert!(error.is_out_of_memory());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn set_limit(device: Device, bytes: Option<usize>) -> Option<usize> {
    arena(device).set_limit(bytes)
}

/// Bytes above which cached memory is given back before more is reserved; never fails an
/// allocation. Returns the previous one.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// assert_eq!(memory::set_soft_limit(own, Some(1 << 30)), None);
/// assert_eq!(memory::set_soft_limit(own, None), Some(1 << 30));
/// # Ok::<(), Error>(())
/// ```
pub fn set_soft_limit(device: Device, bytes: Option<usize>) -> Option<usize> {
    arena(device).set_soft_limit(bytes)
}

/// Records the last `max_entries` events of a device, or stops; returns the previous level. With
/// the host's, those of pinned and spilled memory are recorded too.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// use plimsoll_tensor::memory::HistoryLevel;
/// let own = device::private_cpu(&Default::default())?;
/// memory::record_memory_history(own, HistoryLevel::All, 100);
/// drop(Tensor::zeros(&[4], (DType::F32, own))?);
/// assert!(!memory::arena(own).history().is_empty());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn record_memory_history(
    device: Device,
    level: HistoryLevel,
    max_entries: usize,
) -> HistoryLevel {
    if device == Device::CPU {
        device::record_pinned_history(level, max_entries);
        device::spill_arena().record_history(level, max_entries);
    }
    arena(device).record_history(level, max_entries)
}

/// The present state of a device's memory, and its history as far as it is recorded.
pub fn snapshot(device: Device) -> Snapshot {
    let entry = device::entry(device);
    Snapshot::take(&[entry.arena()], entry.configuration())
}

/// Writes a snapshot of every device, and of pinned and spilled host memory, in PyTorch's layout,
/// for its viewer and for `plimsoll` itself: a pickle, or JSON if the name ends in `.json`.
///
/// ```
/// use plimsoll_tensor::memory;
/// let path = std::env::temp_dir().join(format!("plimsoll-doc-{}.json", std::process::id()));
/// memory::dump_snapshot(&path)?;
/// assert!(std::fs::read_to_string(&path)?.contains("segments"));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn dump_snapshot(path: impl AsRef<Path>) -> Result<()> {
    Snapshot::take(&arenas(), device::entry(Device::CPU).configuration()).save(path)
}
