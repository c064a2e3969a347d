//! Where segments come from: the small trait under the caching allocator, and the fences by which a
//! device says that its queued work has passed a point. Implementations are in `sources/`; what is
//! done with segments is in `allocate.rs`.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A queue of work on a device. 0 is the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The stream that work goes to unless another is named.
    pub const DEFAULT: StreamId = StreamId(0);
}

/// A source has no more memory for a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFull {
    /// What the system or driver said, for the report; may be empty.
    pub reason: String,
}

impl SourceFull {
    /// Full, with what the system or driver said.
    pub fn because(reason: impl Into<String>) -> SourceFull {
        SourceFull { reason: reason.into() }
    }
}

/// How much memory a source could give in all, for limits and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// All the memory there is for this process (physical, or the container's limit).
    pub total_bytes: Option<usize>,
    /// What nobody uses now.
    pub free_bytes: Option<usize>,
    /// What other processes and libraries use now.
    pub used_by_others_bytes: Option<usize>,
}

/// Where segments come from.
///
/// All methods may be called from any thread, `reserve` and `record` with the arena's lock held:
/// they must not call back into the arena.
pub trait Source: Send + Sync + fmt::Debug + 'static {
    /// A short name for reports, such as `host`.
    fn name(&self) -> &'static str;

    /// Takes `bytes` (not 0) from the system. The address is aligned to at least 64 bytes on a host
    /// and 512 on a device.
    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull>;

    /// Gives a segment back.
    ///
    /// # Safety
    /// `address` came from `reserve(bytes)` of this source with these `bytes`, is released once,
    /// and neither the program nor queued work uses it any more.
    unsafe fn release(&self, address: NonZeroUsize, bytes: usize);

    /// How much there is in all.
    fn room(&self) -> Room {
        Room::default()
    }

    /// Its addresses apart from its memory, for expandable segments.
    ///
    /// # Errors
    /// Why it has none: a source gives whole segments unless it says otherwise.
    fn address_space(&self) -> Result<&dyn AddressSpace, String> {
        Err(format!("{} memory comes in whole segments only", self.name()))
    }

    /// Whether running out shows only when it is too late. Host memory is overcommitted: instead of
    /// an error the system ends a process, so an arena over such a source keeps to a default cap.
    fn overcommits(&self) -> bool {
        false
    }

    /// A point in `stream`'s queue: done once all work queued so far has run. The default is that
    /// of a device that does its work at once.
    fn record(&self, stream: StreamId) -> Fence {
        let _ = stream;
        Fence::done()
    }

    /// Waits until `stream` has no queued work.
    fn synchronize(&self, stream: StreamId) {
        let _ = stream;
    }
}

/// Addresses that memory is put behind later, a page at a time: what expandable segments are made
/// of. A range is reserved once, takes no memory by itself, and keeps its addresses while pages of
/// it are mapped and unmapped.
///
/// All methods may be called from any thread, all but `unmap` with the arena's lock held. The size
/// of a page is the caller's choice, a multiple of 2 MiB that is the same for all pages of a range;
/// addresses and sizes are whole pages from the start of the range.
pub trait AddressSpace: Send + Sync + fmt::Debug {
    /// Takes a range of `bytes` addresses (not 0), aligned as segments are. No memory is behind it.
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull>;

    /// Gives a range back.
    ///
    /// # Safety
    /// `address` came from `reserve_range(bytes)` of this source with these `bytes`, is released
    /// once, and no page of it is mapped.
    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize);

    /// Puts memory behind whole pages; all of them or, where it fails, none.
    ///
    /// # Safety
    /// The pages lie in one range of this source, and none of them is mapped.
    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        page_bytes: usize,
    ) -> Result<(), SourceFull>;

    /// Gives the memory behind whole pages back; their addresses stay reserved.
    ///
    /// # Safety
    /// The pages lie in one range of this source and are mapped, with this size of page, and
    /// neither the program nor queued work uses them any more.
    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, page_bytes: usize);
}

/// What a device implements to say whether a point in a queue was passed.
pub trait FenceState: Send + Sync + fmt::Debug {
    /// Whether the work before the point has run. Once true, always true.
    fn is_done(&self) -> bool;

    /// Waits until [`FenceState::is_done`].
    fn wait(&self);

    /// This as what it is, for the device that made it; see [`Fence::state`].
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

/// A point in a stream's queue.
///
/// ```
/// use plimsoll_memory::Fence;
/// assert!(Fence::done().is_done());
/// ```
#[derive(Clone, Debug)]
pub struct Fence(Option<Arc<dyn FenceState>>);

impl Fence {
    /// A point that was passed already.
    pub const fn done() -> Fence {
        Fence(None)
    }

    /// A point that the device tells about.
    pub fn new(state: Arc<dyn FenceState>) -> Fence {
        Fence(Some(state))
    }

    /// The device's own state, if it is a `T`: its queues can wait for it without the host.
    pub fn state<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.as_any()?.downcast_ref()
    }

    /// Whether the work before the point has run.
    pub fn is_done(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.is_done())
    }

    /// Waits until the work before the point has run.
    pub fn wait(&self) {
        if let Some(state) = &self.0 {
            state.wait();
        }
    }
}
