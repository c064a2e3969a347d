//! Observers of the books: whoever wants to hear of every event of every arena as it is booked (the
//! profiler). Off, they cost an event one load. What is past is in `history.rs`; launches of
//! kernels are told of by the `tensor` crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_core::Device;

use crate::book::event::Event;
use crate::platform::lock::Lock;

/// An event, and what its arena's book says after it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BookChange {
    /// The device whose memory it is.
    pub device: Device,
    /// What reports call the arena, where the device has several: `cpu:pinned`.
    pub arena: Option<&'static str>,
    /// What happened. A free that nothing delays is told of once, as its request.
    pub event: Event,
    /// Bytes of live blocks of this arena, after rounding.
    pub allocated_bytes: usize,
    /// Bytes that this arena has from its source.
    pub reserved_bytes: usize,
}

/// Somebody who hears of every event, on the thread that made it.
pub trait BookObserver: Send + Sync + 'static {
    /// An event was booked. The arena is locked: this must neither allocate from an arena nor wait
    /// for anybody who might.
    fn changed(&self, change: &BookChange);
}

static ON: AtomicBool = AtomicBool::new(false);

type Observers = Vec<(u64, Arc<dyn BookObserver>)>;

pub(crate) static OBSERVERS: Lock<Observers> = Lock::new(Vec::new());

/// An observer hears of events as long as this lives.
#[derive(Debug)]
#[must_use = "the observer hears of events only while this lives"]
pub struct Watching {
    id: u64,
}

/// Lets `observer` hear of every event of every arena until the returned value is dropped.
///
/// ```
/// use plimsoll_core::Device;
/// use plimsoll_memory::{Action, Arena, BookChange, BookObserver, Configuration, HostSource};
/// use plimsoll_memory::{OriginId, Request, watch_books};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Allocated(Mutex<Vec<usize>>);
/// impl BookObserver for Allocated {
///     fn changed(&self, change: &BookChange) {
///         if change.event.action == Action::Allocated {
///             self.0.lock().unwrap().push(change.allocated_bytes);
///         }
///     }
/// }
///
/// let source = Box::new(HostSource::default());
/// let arena = Arena::open(Device::cpu(), source, &Configuration::default());
/// let seen = Arc::new(Allocated::default());
/// let watching = watch_books(seen.clone());
/// let first = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
/// let second = arena.allocate(&Request::new(500, OriginId::UNKNOWN))?;
/// drop(watching);
/// assert_eq!(*seen.0.lock().unwrap(), [1024, 1536]);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub fn watch_books(observer: Arc<dyn BookObserver>) -> Watching {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut observers = OBSERVERS.lock();
    observers.push((id, observer));
    ON.store(true, Ordering::Relaxed);
    Watching { id }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let gone = {
            let mut observers = OBSERVERS.lock();
            let at = observers.iter().position(|(id, _)| *id == self.id);
            let gone = at.map(|at| observers.remove(at));
            ON.store(!observers.is_empty(), Ordering::Relaxed);
            gone
        };
        drop(gone);
    }
}

/// Whether somebody listens.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Tells all observers. Called under the arena's lock, which comes before this one's.
#[cold]
#[inline(never)]
pub(crate) fn tell(change: &BookChange) {
    for (_, observer) in OBSERVERS.lock().iter() {
        observer.changed(change);
    }
}
