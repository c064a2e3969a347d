//! Captures that are open on a device: which streams write down what they are given instead of
//! running it, what that touches, and what must not happen meanwhile. `../graph.rs` begins and ends
//! them, and replays what was written.
//!
//! Note [Streams of a capture]
//! A capture begins on one stream, which has nothing left to do then. Another one joins it by
//! waiting for a point of a stream that captures; it too is waited for first. So a stream that
//! captures has no work under way, and whoever asks when it has passed something is told that it
//! has. Work outside never waits for a capture, nor a capture for work outside: what a graph reads
//! and writes is ordered when it is replayed, like the operands of any launch. Inside, streams are
//! ordered by what they touch as everywhere (`storage/stream_order.rs`), in a list of the capture's
//! own.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Fence, FenceState, PoolId, StreamId};
use smallvec::SmallVec;

use super::queue::Work;
use crate::lock::Mutex;
use crate::storage::Storage;
use crate::storage::stream_order::StreamUses;

/// The captures of one device.
#[derive(Default)]
pub(crate) struct Captures {
    /// How many, so that asking costs one load while there are none.
    open: AtomicUsize,
    list: Mutex<Vec<Arc<Capture>>>,
}

impl Captures {
    /// The capture that `stream` belongs to.
    #[inline]
    pub(crate) fn of(&self, stream: StreamId) -> Option<Arc<Capture>> {
        if self.open.load(Ordering::Acquire) == 0 { None } else { self.look_up(stream) }
    }

    #[cold]
    fn look_up(&self, stream: StreamId) -> Option<Arc<Capture>> {
        self.list.lock().iter().find(|capture| capture.has(stream)).cloned()
    }

    pub(crate) fn open(&self, capture: &Arc<Capture>) {
        self.list.lock().push(capture.clone());
        self.open.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn close(&self, capture: &Arc<Capture>) {
        capture.ended.store(true, Ordering::Release);
        self.list.lock().retain(|open| !Arc::ptr_eq(open, capture));
        self.open.fetch_sub(1, Ordering::Release);
    }
}

/// A capture that is open, or was.
pub(crate) struct Capture {
    device: Device,
    origin: StreamId,
    pool: PoolId,
    ended: AtomicBool,
    written: Mutex<Written>,
}

/// What was written down so far.
#[derive(Default)]
pub(crate) struct Written {
    members: SmallVec<[Member; 2]>,
    touched: HashMap<usize, Touched>,
    /// Host memory that is copied from, or to: then it is written.
    pub(crate) host: Vec<(Fixed, bool)>,
    /// The work itself, where no driver keeps it.
    pub(crate) work: Vec<Work>,
    /// The first thing that went wrong.
    pub(crate) failure: Option<String>,
}

/// A stream of the capture. Its work is counted, so that work which nobody waited for is found.
struct Member {
    stream: StreamId,
    given: u64,
    waited_for: u64,
}

/// A storage that captured work uses.
struct Touched {
    holds: Holds,
    uses: StreamUses,
    writes: bool,
}

enum Holds {
    /// Memory from before the capture: the graph keeps it.
    Outside(Fixed),
    /// Memory of the graph's pool, which may go meanwhile. What a stream other than its own uses
    /// stays until the capture ends: the pool would hand it out again without waiting.
    Own { storage: Weak<Storage>, until_the_end: Option<Arc<Storage>> },
}

/// A storage that stays where it is and, unless it is host memory that is only read, whose bytes
/// nobody counts on to be what they were.
pub(crate) struct Fixed(Arc<Storage>);

impl Fixed {
    fn new(storage: &Arc<Storage>) -> Result<Fixed> {
        let fixed = Fixed::in_place(storage)?;
        storage.expose()?;
        Ok(fixed)
    }

    /// One that stays where it is.
    fn in_place(storage: &Arc<Storage>) -> Result<Fixed> {
        storage.pin()?;
        storage.uses.fix();
        Ok(Fixed(storage.clone()))
    }

    /// Host memory, under the claim of a copy: what was made from memory that is written was
    /// brought home before that, so that exposing it starts nothing.
    fn host(storage: &Arc<Storage>, writes: bool) -> Result<Fixed> {
        if writes { Fixed::new(storage) } else { Fixed::in_place(storage) }
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.0
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        self.0.uses.unfix();
        self.0.unpin();
    }
}

impl Written {
    fn member(&mut self, stream: StreamId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.stream == stream)
    }

    fn note_work(&mut self, stream: StreamId) {
        if let Some(member) = self.member(stream) {
            member.given += 1;
        }
    }

    /// A stream with work that no other one waited for; `origin` needs nobody to.
    pub(crate) fn unjoined(&self, origin: StreamId) -> Option<StreamId> {
        let others = self.members.iter().filter(|member| member.stream != origin);
        others.into_iter().find(|other| other.waited_for < other.given).map(|other| other.stream)
    }

    /// What is touched: from before the capture, with whether it is written; and the pool's, as far
    /// as it lives.
    pub(crate) fn take_touched(&mut self) -> (Vec<(Fixed, bool)>, Vec<Weak<Storage>>) {
        let (mut outside, mut own) = (Vec::new(), Vec::new());
        for (_, touched) in std::mem::take(&mut self.touched) {
            match touched.holds {
                Holds::Outside(fixed) => outside.push((fixed, touched.writes)),
                Holds::Own { storage, .. } => own.push(storage),
            }
        }
        (outside, own)
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture({}, stream {})", self.device, self.origin.0)
    }
}

impl Capture {
    pub(crate) fn new(device: Device, origin: StreamId, pool: PoolId) -> Arc<Capture> {
        let first = Member { stream: origin, given: 0, waited_for: 0 };
        let written = Written { members: SmallVec::from_iter([first]), ..Written::default() };
        let (ended, written) = (AtomicBool::new(false), Mutex::new(written));
        Arc::new(Capture { device, origin, pool, ended, written })
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    pub(crate) fn origin(&self) -> StreamId {
        self.origin
    }

    /// The pool that its streams' memory comes from.
    pub(crate) fn pool(&self) -> PoolId {
        self.pool
    }

    /// Takes what was written. For whoever ends it.
    pub(crate) fn take_written(&self) -> Written {
        std::mem::take(&mut self.written.lock())
    }

    /// Whether `stream` belongs to it, if it is open.
    fn has(&self, stream: StreamId) -> bool {
        self.written.lock().member(stream).is_some()
    }

    /// Notes what went wrong: the graph will not be made.
    #[cold]
    pub(crate) fn fail(&self, why: &str) {
        self.written.lock().failure.get_or_insert_with(|| why.to_string());
    }

    /// What the host may not do meanwhile, as the error that says so.
    #[cold]
    pub(crate) fn refuse(&self, what: &str) -> Error {
        let why = format!(
            "operation not permitted when stream is capturing: {what} on {}, and nothing that a capture is given runs \
             before its graph is replayed",
            self.device
        );
        self.fail(&why);
        Error::driver(why)
    }

    /// Memory that was allocated for a stream of the capture.
    pub(crate) fn adopt(&self, storage: &Arc<Storage>) {
        let holds = Holds::Own { storage: Arc::downgrade(storage), until_the_end: None };
        let uses = StreamUses::new(storage.uses.home());
        let touched = Touched { holds, uses, writes: true };
        self.written.lock().touched.insert(Arc::as_ptr(storage).addr(), touched);
    }

    /// Host memory that captured copies use.
    pub(crate) fn hold_host(&self, storage: &Arc<Storage>, writes: bool) -> Result<()> {
        let fixed = Fixed::host(storage, writes)?;
        self.written.lock().host.push((fixed, writes));
        Ok(())
    }

    /// Appends work that no driver keeps.
    pub(crate) fn write_down(&self, work: Work) {
        self.written.lock().work.push(work);
    }

    /// Notes that work on `stream` touches `storage`; returns the streams that it must come after.
    pub(crate) fn touch(
        &self,
        stream: StreamId,
        storage: &Arc<Storage>,
        writes: bool,
    ) -> Result<SmallVec<[StreamId; 2]>> {
        let mut first = SmallVec::new();
        let key = Arc::as_ptr(storage).addr();
        // An address is nobody else's as long as the list holds it, weakly or not.
        if !self.written.lock().touched.contains_key(&key) {
            // Outside of the lock: bytes that were taken away come home.
            let holds = Holds::Outside(Fixed::new(storage)?);
            let touched = Touched { holds, uses: StreamUses::new(stream), writes };
            self.written.lock().touched.entry(key).or_insert(touched);
        }
        let mut written = self.written.lock();
        written.note_work(stream);
        let Some(touched) = written.touched.get_mut(&key) else { return Ok(first) };
        touched.writes |= writes;
        touched.uses.note(stream, writes, |other| first.push(other));
        if let Holds::Own { until_the_end, .. } = &mut touched.holds
            && stream != storage.uses.home()
        {
            until_the_end.get_or_insert_with(|| storage.clone());
        }
        Ok(first)
    }

    /// Notes that `stream`, a stream of the capture from now on, waits for `point`.
    pub(crate) fn wait(&self, stream: StreamId, point: &CapturedPoint) {
        let mut written = self.written.lock();
        if let Some(member) = written.member(point.stream) {
            member.waited_for = member.waited_for.max(point.at);
        }
        match written.member(stream) {
            Some(member) => member.given += 1,
            None => written.members.push(Member { stream, given: 1, waited_for: 0 }),
        }
    }

    /// A point in what `stream` has written down; `order` is the driver's own, if there is one.
    pub(crate) fn point(self: &Arc<Capture>, stream: StreamId, order: Fence) -> Fence {
        let at = self.written.lock().member(stream).map_or(0, |member| member.given);
        Fence::new(Arc::new(CapturedPoint { capture: self.clone(), stream, at, order }))
    }
}

/// A point in what a stream has written down. It is passed once the capture has ended: then nothing
/// waits for it any more. The host cannot wait for it (`Capture::refuse`).
pub(crate) struct CapturedPoint {
    pub(crate) capture: Arc<Capture>,
    stream: StreamId,
    /// How much work the stream had been given.
    at: u64,
    /// How the driver's streams wait for it.
    pub(crate) order: Fence,
}

impl FenceState for CapturedPoint {
    fn is_done(&self) -> bool {
        self.capture.ended.load(Ordering::Acquire)
    }

    fn wait(&self) {}

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl fmt::Debug for CapturedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CapturedPoint({} of stream {})", self.at, self.stream.0)
    }
}
