//! Which queued work touches a storage: streams of its own device, and copies that run beside the
//! host. Dispatch orders work by this, and a free waits for the streams that still use the bytes.
//!
//! Note [Safe code cannot race streams]
//! A stream executes in order, so work on one stream needs nothing. Before work on stream `s` reads
//! a storage, `s` waits for the newest write if that was on another stream; before it writes, `s`
//! also waits for every other stream that read since. Waiting means recording a fence at the end of
//! the other stream's queue, which lies at or after the work in question. A fence is only made when
//! streams really differ, so single-stream programs never make one. Fresh memory counts as written
//! by its home stream: work queued there may still use it for whatever it was before.
//!
//! Host memory has no streams. While an asynchronous copy reads or writes it, the storage carries
//! that copy's fence, and a claim (`claim.rs`) that would disturb the copy, or see it half done,
//! waits. Graphs copy from and to it at any time, at the address that they were captured with: as
//! long as one does, the storage does not move.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::lock::Mutex;
use plimsoll_memory::{Fence, StreamId};
use smallvec::SmallVec;

/// The stream that a storage belongs to, and the queued work that touches it.
pub(crate) struct StreamUses {
    home: StreamId,
    /// Made by the first queued work: memory that only synchronous devices touch has none.
    queued: OnceLock<Box<Queued>>,
}

struct Queued {
    streams: Mutex<Uses>,
    copies: Mutex<Copies>,
    /// Whether `copies` has any, so that claims on ordinary host memory cost one load.
    has_copies: AtomicBool,
    /// How many times captures and graphs hold it in its place.
    fixed: AtomicU32,
}

struct Uses {
    writer: StreamId,
    /// Streams that read since the newest write.
    readers: SmallVec<[StreamId; 2]>,
    /// Every stream that ever touched it.
    all: SmallVec<[StreamId; 2]>,
}

impl Uses {
    fn fresh(home: StreamId) -> Uses {
        Uses { writer: home, readers: SmallVec::new(), all: SmallVec::new() }
    }

    fn foreign(&self, home: StreamId) -> impl Iterator<Item = StreamId> {
        self.all.iter().copied().filter(move |&stream| stream != home)
    }
}

/// Asynchronous copies from and to host memory.
#[derive(Default)]
struct Copies {
    reading: SmallVec<[Fence; 1]>,
    writing: Option<Fence>,
}

impl StreamUses {
    /// Fresh memory of the stream `home`.
    pub(crate) const fn new(home: StreamId) -> StreamUses {
        StreamUses { home, queued: OnceLock::new() }
    }

    /// The stream that the memory belongs to.
    pub(crate) fn home(&self) -> StreamId {
        self.home
    }

    fn queued(&self) -> &Queued {
        self.queued.get_or_init(|| {
            Box::new(Queued {
                streams: Mutex::new(Uses::fresh(self.home)),
                copies: Mutex::new(Copies::default()),
                has_copies: AtomicBool::new(false),
                fixed: AtomicU32::new(0),
            })
        })
    }

    /// The storage has moved to fresh memory of its home stream.
    pub(super) fn renew(&self) {
        if let Some(queued) = self.queued.get() {
            *queued.streams.lock() = Uses::fresh(self.home);
        }
    }

    /// Notes that work on `stream` touches the storage; calls `wait_for` with each stream that must
    /// be waited for first.
    pub(crate) fn note(&self, stream: StreamId, writes: bool, mut wait_for: impl FnMut(StreamId)) {
        let mut uses = self.queued().streams.lock();
        if uses.writer != stream {
            wait_for(uses.writer);
        }
        if writes {
            for &reader in uses.readers.iter().filter(|&&reader| reader != stream) {
                wait_for(reader);
            }
            uses.readers.clear();
            uses.writer = stream;
        } else if !uses.readers.contains(&stream) {
            uses.readers.push(stream);
        }
        if !uses.all.contains(&stream) {
            uses.all.push(stream);
        }
    }

    /// Notes that `stream` uses the memory in a way that dispatch does not see.
    pub(crate) fn touch(&self, stream: StreamId) {
        let mut uses = self.queued().streams.lock();
        if !uses.all.contains(&stream) {
            uses.all.push(stream);
        }
    }

    /// Every stream that touched the storage.
    pub(crate) fn for_each(&self, visit: impl FnMut(StreamId)) {
        if let Some(queued) = self.queued.get() {
            queued.streams.lock().all.iter().copied().for_each(visit);
        }
    }

    /// The streams other than its own that touched the storage.
    pub(super) fn for_each_foreign(&self, visit: impl FnMut(StreamId)) {
        if let Some(queued) = self.queued.get() {
            queued.streams.lock().foreign(self.home).for_each(visit);
        }
    }

    /// The same for the last holder, which nobody can race.
    pub(super) fn for_each_foreign_mut(&mut self, visit: impl FnMut(StreamId)) {
        if let Some(queued) = self.queued.get_mut() {
            queued.streams.get_mut().foreign(self.home).for_each(visit);
        }
    }

    /// A capture or a graph knows its address until [`StreamUses::unfix`]. Called under a claim, as
    /// [`StreamUses::is_fixed`] is by whoever would move it.
    pub(crate) fn fix(&self) {
        self.queued().fixed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unfix(&self) {
        self.queued().fixed.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.queued.get().is_some_and(|queued| queued.fixed.load(Ordering::Relaxed) > 0)
    }

    /// Host memory: a copy that is done at `fence` reads it, or writes it. Called under a claim of
    /// that sort.
    pub(crate) fn busy_until(&self, fence: Fence, writes: bool) {
        let queued = self.queued();
        let mut copies = queued.copies.lock();
        if writes {
            // The claim waited for all earlier copies.
            *copies = Copies { reading: SmallVec::new(), writing: Some(fence) };
        } else {
            copies.reading.retain(|earlier| !earlier.is_done());
            copies.reading.push(fence);
        }
        queued.has_copies.store(true, Ordering::Release);
    }

    /// Host memory: whether copies may be under way.
    #[inline]
    pub(super) fn has_copies(&self) -> bool {
        self.queued.get().is_some_and(|queued| queued.has_copies.load(Ordering::Acquire))
    }

    /// Host memory: waits for the copies that reading (or writing) it would disturb. Called by a
    /// claim that was just granted, so no new copy can begin; streams never claim, so they get
    /// there.
    #[inline]
    pub(super) fn settle(&self, writes: bool) {
        if let Some(queued) = self.queued.get()
            && queued.has_copies.load(Ordering::Acquire)
        {
            queued.wait_for_copies(writes);
        }
    }
}

impl Queued {
    #[cold]
    fn wait_for_copies(&self, writes: bool) {
        // Readers share a claim, so they wait without the lock.
        let (writing, reading) = {
            let copies = self.copies.lock();
            (copies.writing.clone(), if writes { copies.reading.clone() } else { SmallVec::new() })
        };
        writing.iter().chain(&reading).for_each(Fence::wait);
        if writes {
            *self.copies.lock() = Copies::default();
            self.has_copies.store(false, Ordering::Release);
        }
    }
}
