//! Pinned host memory: an arena of the host whose pages are locked, so that an accelerator can copy from and to it while the host
//! goes on. Who may touch such memory while a copy runs is in `storage/uses.rs`.

use std::sync::OnceLock;

use plimsoll_core::Device;
use plimsoll_cuda::Context;
use plimsoll_memory::{Arena, Configuration, HistoryLevel, PinnedSource, Source};

use crate::lock::Mutex;

static PINNED: OnceLock<&'static Arena> = OnceLock::new();

/// The history that was asked for, for an arena that is opened later.
static HISTORY: Mutex<Option<(HistoryLevel, usize)>> = Mutex::new(None);

/// Records the events of pinned memory, from now on or from when there is any.
pub(crate) fn record_pinned_history(level: HistoryLevel, max_entries: usize) {
    let mut history = HISTORY.lock();
    *history = Some((level, max_entries));
    if let Some(arena) = pinned_if_open() {
        arena.record_history(level, max_entries);
    }
}

/// The arena of pinned host memory if anything was ever pinned: asking does not open a GPU.
pub(crate) fn pinned_if_open() -> Option<&'static Arena> {
    PINNED.get().copied()
}

/// The arena of pinned host memory, one for the process, named `cpu:pinned`; its bytes are in no device's own
/// statistics.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device};
/// let x = Tensor::ones(&[1024], DType::F32)?.pin_memory()?;
/// assert!(x.is_pinned());
/// assert!(device::pinned_arena().live_bytes() >= 4096);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn pinned_arena() -> &'static Arena {
    PINNED.get_or_init(|| {
        // A mistake in the environment is told by the host device; see `Entry::check_configuration`.
        let configuration = Configuration::process().cloned().unwrap_or_default();
        let cap = configuration.pinned_limit_bytes();
        // Only the driver's own pinned memory is copied by a GPU without the host's help.
        let source: Box<dyn Source> = match Context::open(0) {
            Ok(context) => Box::new(plimsoll_cuda::PinnedSource::new(context)),
            Err(_) => Box::new(PinnedSource::new(cap)),
        };
        let arena = Arena::open_named(Device::cpu(), "cpu:pinned", source, &configuration);
        // The host's limit is on the host's arena; pinned memory has a cap of its own.
        arena.set_limit(cap);
        if let Some((level, max_entries)) = *HISTORY.lock() {
            arena.record_history(level, max_entries);
        }
        arena
    })
}
