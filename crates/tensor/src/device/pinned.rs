//! Pinned host memory: an arena of the host whose pages are locked, so that an accelerator can copy
//! from and to it while the host goes on. Who may touch such memory while a copy runs is in
//! `storage/stream_order.rs`.
//!
//! Note [Pinned memory and GPUs]
//! A driver copies without the host only what it knows of. Asking for pinned memory does not open a
//! GPU: that takes seconds and hundreds of megabytes, in programs that may never use one. While no
//! GPU is open, pages are locked by the system alone. The first GPU to be opened gets to know all
//! segments there are, and from then on every new one. A segment that the driver refuses counts as
//! not pinned: copies from it are right, and the host waits for them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use plimsoll_core::Device;
use plimsoll_cuda::Context;
use plimsoll_memory::{
    Arena, Block, Configuration, HistoryLevel, PinnedSource, Room, Source, SourceFull,
};

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

/// The arena of pinned host memory, one for the process, named `cpu:pinned`; its bytes are in no
/// device's own statistics.
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
        // A mistake in the environment is told by the host device; see
        // `Entry::check_configuration`.
        let configuration = Configuration::process().cloned().unwrap_or_default();
        let cap = configuration.pinned_limit_bytes();
        let source = Box::new(Pages(PinnedSource::new(cap)));
        let arena = Arena::open_named(Device::cpu(), "cpu:pinned", source, &configuration);
        // The host's limit is on the host's arena; pinned memory has a cap of its own.
        arena.set_limit(cap);
        if let Some((level, max_entries)) = *HISTORY.lock() {
            arena.record_history(level, max_entries);
        }
        arena
    })
}

/// Whether accelerators copy from and to `block` without the host. Asks no driver.
pub(crate) fn is_pinned_block(block: &Block) -> bool {
    let ours = PINNED.get().is_some_and(|arena| std::ptr::eq(block.arena(), *arena));
    ours && SEGMENTS.lock().is_known(block.address())
}

/// A GPU is open: makes the segments there are known to its driver.
/// See Note [Pinned memory and GPUs].
pub(super) fn gpu_opened(context: &'static Context) {
    let mut segments = SEGMENTS.lock();
    if segments.context.is_none() {
        segments.context = Some(context);
        let known = |(&address, segment): (&NonZeroUsize, &mut Segment)| {
            segment.registered = register(context, address, segment.bytes);
        };
        segments.all.iter_mut().for_each(known);
    }
}

/// Whether a GPU was opened.
pub(super) fn knows_a_gpu() -> bool {
    SEGMENTS.lock().context.is_some()
}

/// Whether the driver knows the memory now; if not, it counts as not pinned.
fn register(context: &'static Context, address: NonZeroUsize, bytes: usize) -> bool {
    // SAFETY: the segment is mapped until `Pages::release`, which takes the registration back
    // first.
    unsafe { context.register(address, bytes) }.is_ok()
}

/// The segments of the pinned arena, and the GPU whose driver knows them. Registered memory is
/// known to all GPUs of the process, so that one is enough.
static SEGMENTS: Mutex<Segments> = Mutex::new(Segments { all: BTreeMap::new(), context: None });

struct Segments {
    all: BTreeMap<NonZeroUsize, Segment>,
    context: Option<&'static Context>,
}

struct Segment {
    bytes: usize,
    registered: bool,
}

impl Segments {
    /// Whether the segment around `address` is one that copies need no help with.
    fn is_known(&self, address: usize) -> bool {
        let Some(address) = NonZeroUsize::new(address) else { return false };
        let segment = self.all.range(..=address).next_back();
        segment.is_some_and(|(_, segment)| segment.registered || self.context.is_none())
    }
}

/// Locked pages, known to the driver once there is one.
#[derive(Debug)]
struct Pages(PinnedSource);

impl Source for Pages {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let address = self.0.reserve(bytes)?;
        let mut segments = SEGMENTS.lock();
        let registered = segments.context.is_some_and(|context| register(context, address, bytes));
        segments.all.insert(address, Segment { bytes, registered });
        Ok(address)
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        {
            let mut segments = SEGMENTS.lock();
            let segment = segments.all.remove(&address);
            if let (Some(context), Some(Segment { registered: true, .. })) =
                (segments.context, segment)
            {
                // SAFETY: it was registered above, once, and by this method's contract nothing uses
                // it.
                unsafe { context.unregister(address) };
            }
        }
        // SAFETY: the caller promises a segment of `reserve(bytes)`, which came from there.
        unsafe { self.0.release(address, bytes) };
    }

    fn room(&self) -> Room {
        self.0.room()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> NonZeroUsize {
        NonZeroUsize::new(address).expect("not 0")
    }

    #[test]
    fn without_a_gpu_every_segment_counts() {
        let segment = Segment { bytes: 4096, registered: false };
        let segments = Segments { all: BTreeMap::from([(at(4096), segment)]), context: None };
        assert!(segments.is_known(4096) && segments.is_known(8191));
        assert!(!segments.is_known(4095) && !segments.is_known(0));
    }
}
