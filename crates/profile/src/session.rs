//! A session: from its start to its stop the profiler hears of calls, launches and changes of
//! memory on every thread and writes them down (`log.rs`). One runs at a time. What was asked for
//! is in `profile.rs`, ranges of the program in `range.rs`; what comes out is a [`Recording`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use plimsoll_core::{Error, Result};
use plimsoll_memory::{
    Action, BookChange, BookObserver, Holding, OriginId, Phase, Site, Watching, watch_books,
};
use plimsoll_tensor::Tensor;
use plimsoll_tensor::observe::{Call, CallKind, Launch, LaunchTime, Observer, Observing, observe};

use crate::log::{Enter, Entry, InputMeta, Kernel, MemoryEntry, ThreadLog, What};
use crate::profile::Profile;
use crate::recording::{Finished, Recording};

/// Whether a session runs.
static ON: AtomicBool = AtomicBool::new(false);
static ACTIVE: Mutex<Option<Arc<Active>>> = Mutex::new(None);

/// The session that runs, as the threads see it.
#[derive(Debug)]
pub(crate) struct Active {
    /// Tells sessions apart in a thread's memory.
    pub(crate) number: u64,
    began: Instant,
    asked: Profile,
    logs: Mutex<Vec<Arc<ThreadLog>>>,
}

thread_local! {
    /// This thread's log, and the session that it belongs to.
    static LOG: RefCell<Option<(u64, Arc<ThreadLog>)>> = const { RefCell::new(None) };
}

/// Whether a session runs; one load.
#[doc(hidden)]
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The session that runs.
pub(crate) fn active() -> Option<Arc<Active>> {
    let _holding = Holding::new();
    ACTIVE.lock().clone()
}

impl Active {
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Writes an entry into this thread's log. Takes no lock that anybody holds while allocating,
    /// for it is called under an arena's.
    pub(crate) fn write(&self, entry: Entry) {
        let _ = LOG.try_with(|log| {
            let Ok(mut log) = log.try_borrow_mut() else { return };
            match &*log {
                Some((number, own)) if *number == self.number => own.push(entry),
                _ => {
                    let own = {
                        let mut logs = self.logs.lock();
                        let own = ThreadLog::new(logs.len() as u64 + 1);
                        logs.push(own.clone());
                        own
                    };
                    own.push(entry);
                    *log = Some((self.number, own));
                }
            }
        });
    }

    pub(crate) fn stack(&self, origin: OriginId, backward: bool) -> Vec<Site> {
        if !self.asked.stacks {
            return Vec::new();
        }
        match self.asked.frames {
            // What runs backward stands for the forward line, which the origin has.
            Some(frames) if !backward => frames(),
            _ => match origin.get().site {
                Site::Unknown => Vec::new(),
                site => vec![site],
            },
        }
    }
}

impl Observer for Active {
    fn enter(&self, call: &Call<'_>) {
        let metas = self.asked.shapes || self.asked.flops;
        let inputs =
            if metas { call.inputs.iter().map(|t| InputMeta::of(t)).collect() } else { vec![] };
        let backward = match call.kind {
            CallKind::Evaluation | CallKind::Node => true,
            _ => self.asked.stacks && call.origin.get().phase == Phase::Backward,
        };
        // Waits may begin while memory is claimed; nothing of another language is asked then.
        let stack = match call.kind {
            CallKind::Wait => Vec::new(),
            _ => self.stack(call.origin, backward),
        };
        let what = match call.kind {
            CallKind::Range => What::Range,
            kind => What::Call(kind),
        };
        self.write(Entry::Enter(Box::new(Enter {
            at_ns: self.now_ns(),
            name: call.name.clone(),
            what,
            origin: call.origin,
            inputs,
            stack,
        })));
    }

    fn leave(&self, outputs: &[Tensor]) {
        let at_ns = self.now_ns();
        let shapes = |tensor: &Tensor| tensor.shape().to_vec();
        let outputs =
            if self.asked.flops { outputs.iter().map(shapes).collect() } else { Vec::new() };
        self.write(Entry::Leave { at_ns, outputs });
    }

    fn end(&self, launch: &Launch, time: &LaunchTime) {
        // A copy to the host is its device's work.
        let device =
            launch.copy.filter(|way| way.to.is_cpu()).map_or(launch.device, |way| way.from);
        // What runs at once is in its call's own time.
        if device.is_cpu() || device.is_dry() {
            return;
        }
        self.write(Entry::Kernel(Kernel {
            at_ns: self.now_ns(),
            operation: launch.operation,
            device,
            stream: launch.stream,
            copy: launch.copy,
            bytes: launch.bytes_written,
            moved_bytes: launch.bytes_read + launch.bytes_written,
            time: time.clone(),
        }));
    }
}

impl BookObserver for Active {
    fn changed(&self, change: &BookChange) {
        let bytes = change.event.allocated_bytes as i64;
        let (change_bytes, source_bytes) = match change.event.action {
            Action::Allocated if self.asked.memory => (bytes, 0),
            Action::FreeRequested if self.asked.memory => (-bytes, 0),
            Action::SegmentReserved | Action::SegmentMapped => (0, bytes),
            Action::SegmentReleased | Action::SegmentUnmapped => (0, -bytes),
            _ => return,
        };
        self.write(Entry::Memory(MemoryEntry {
            at_ns: self.now_ns(),
            device: change.device,
            arena: change.arena,
            address: change.event.address,
            change_bytes,
            source_bytes,
            allocated_bytes: change.allocated_bytes,
            reserved_bytes: change.reserved_bytes,
            origin: change.event.origin,
        }));
    }
}

/// A running session. Dropping it throws away what it recorded.
#[derive(Debug)]
#[must_use = "it records only while this lives"]
pub struct Session {
    active: Arc<Active>,
    began_unix_ns: u64,
    heard: Option<(Observing, Watching)>,
}

impl Session {
    pub(crate) fn start(asked: Profile) -> Result<Session> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let _holding = Holding::new();
        let mut running = ACTIVE.lock();
        if running.is_some() {
            return Err(Error::invalid_argument(
                "a profiler is running already; stop it before another one starts",
            )
            .in_operation("profile"));
        }
        let active = Arc::new(Active {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            began: Instant::now(),
            asked,
            logs: Mutex::new(Vec::new()),
        });
        *running = Some(active.clone());
        ON.store(true, Ordering::Relaxed);
        drop(running);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        // Also where no memory was asked for: advice is drawn from segments that the source gave.
        let heard = Some((observe(active.clone()), watch_books(active.clone())));
        let began_unix_ns = since_1970.map_or(0, |since| since.as_nanos() as u64);
        Ok(Session { active, began_unix_ns, heard })
    }

    /// Ends the session. Waits for devices that still work on what was recorded.
    pub fn stop(mut self) -> Recording {
        self.end();
        let ended_ns = self.active.now_ns();
        let logs = std::mem::take(&mut *self.active.logs.lock());
        Recording::new(Finished {
            asked: self.active.asked,
            began_unix_ns: self.began_unix_ns,
            ended_ns,
            logs,
        })
    }

    fn end(&mut self) {
        if let Some(heard) = self.heard.take() {
            drop(heard);
            let _holding = Holding::new();
            *ACTIVE.lock() = None;
            ON.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
