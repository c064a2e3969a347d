//! Private pools of a device's memory, as users see them: what a thread allocates inside
//! [`with_pool`] comes from the pool and goes back to it. What a pool is to the allocator is in the
//! memory crate's `private_pool.rs`.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use plimsoll_core::Device;
use plimsoll_memory::{PoolId, PoolPurpose, PoolUse, PrivatePool, StreamId};

use super::{Entry, entry};
use crate::lock::{Mutex, ReentrantGuard, ReentrantLock};
use crate::storage::Storage;
use crate::storage::stream_order::StreamUses;

/// A pool of its own in a device's memory. Its free blocks serve nobody else, and its segments stay
/// until the last clone is dropped; tensors that are alive then keep theirs until they go. What
/// graphs captured into it is apart from what [`with_pool`] allocates: replays write to theirs at
/// any time.
///
/// ```
/// use plimsoll_tensor::device::{self, MemPool, with_pool};
/// use plimsoll_tensor::{DType, Tensor, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let pool = MemPool::new(own);
/// let x = with_pool(&pool, || Tensor::zeros(&[256], (DType::F32, own)))?;
/// assert_eq!((pool.usage().active_bytes, pool.usage().segments), (1024, 1));
/// let y = Tensor::zeros(&[256], (DType::F32, own))?; // from the common pool
/// assert_eq!(memory::memory_reserved(own), 2 * (2 << 20));
/// drop((x, y, pool));
/// assert_eq!(memory::memory_reserved(own), 2 << 20); // the pool's went back
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct MemPool {
    device: Device,
    shared: Arc<Shared>,
}

struct Shared {
    pool: PrivatePool,
    /// Held from the moment that a replay is ordered until it is launched; before any claim. What
    /// looks at launches may replay graphs of its own meanwhile.
    replaying: ReentrantLock,
    /// Streams that replay graphs of the pool: their memory is one, so they come after each other.
    replays: StreamUses,
    /// What graphs of the pool write and tensors may still read.
    written: Mutex<Vec<Weak<Storage>>>,
}

impl MemPool {
    /// A pool for a part of a program.
    pub fn new(device: Device) -> MemPool {
        MemPool::open(device, PoolPurpose::User)
    }

    /// A pool for a captured graph; snapshots tell both sorts apart.
    pub fn for_graph(device: Device) -> MemPool {
        MemPool::open(device, PoolPurpose::Graph)
    }

    fn open(device: Device, purpose: PoolPurpose) -> MemPool {
        let pool = entry(device).arena().open_pool(purpose);
        let (replays, written) = (StreamUses::new(StreamId::DEFAULT), Mutex::default());
        let replaying = ReentrantLock::new();
        MemPool { device, shared: Arc::new(Shared { pool, replaying, replays, written }) }
    }

    /// The device whose memory it is.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Its pair of numbers, as snapshots show it (`segment_pool_id`).
    pub fn id(&self) -> (u64, u64) {
        self.shared.pool.id().pair()
    }

    /// What it holds now.
    pub fn usage(&self) -> PoolUse {
        self.shared.pool.usage()
    }

    /// What captures allocate from.
    pub(crate) fn captured_id(&self) -> PoolId {
        self.shared.pool.id().captured()
    }

    /// Storages of the pool that a graph writes.
    pub(crate) fn add_written(&self, storages: Vec<Weak<Storage>>) {
        let mut written = self.shared.written.lock();
        written.retain(|storage| storage.strong_count() > 0);
        written.extend(storages.into_iter().filter(|storage| storage.strong_count() > 0));
    }

    /// Those of them that tensors still hold.
    pub(crate) fn written(&self) -> Vec<Arc<Storage>> {
        self.shared.written.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Lets one thread at a time replay graphs of the pool. Taken before claims: who holds a claim
    /// never replays.
    pub(crate) fn replaying(&self) -> ReentrantGuard<'_> {
        self.shared.replaying.lock()
    }

    /// Notes that a graph of the pool is replayed on `stream`; calls `wait_for` with the stream
    /// that must be waited for first. Under [`MemPool::replaying`], which is held until the graph
    /// is launched.
    pub(crate) fn replay_on(&self, stream: StreamId, wait_for: impl FnMut(StreamId)) {
        self.shared.replays.note(stream, true, wait_for);
    }

    /// The streams that graphs of the pool were replayed on.
    pub(crate) fn replayed_on(&self, visit: impl FnMut(StreamId)) {
        self.shared.replays.for_each(visit);
    }
}

impl fmt::Debug for MemPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemPool({}, {:?}, {:?})", self.device, self.id(), self.usage())
    }
}

/// Scopes and captures that are open in the process: without any, an allocation costs one load.
static SCOPES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's pools, by device slot; the newest for a device counts.
    static CURRENT: RefCell<Vec<(usize, PoolId)>> = const { RefCell::new(Vec::new()) };
}

/// The pool that this thread's allocations on the device of `entry` come from.
#[inline]
pub(crate) fn current_pool(entry: &Entry) -> PoolId {
    if SCOPES.load(Ordering::Relaxed) == 0 { PoolId::COMMON } else { named(entry) }
}

/// A stream that captures allocates from the capture's pool.
#[cold]
fn named(entry: &Entry) -> PoolId {
    if let Some(capture) = entry.captures().of(entry.current_stream()) {
        return capture.pool();
    }
    let slot = entry.device().slot();
    CURRENT.with_borrow(|pools| {
        pools.iter().rfind(|(of, _)| *of == slot).map_or(PoolId::COMMON, |(_, pool)| *pool)
    })
}

/// Runs `body` with this thread's allocations on the pool's device coming from `pool`.
pub fn with_pool<R>(pool: &MemPool, body: impl FnOnce() -> R) -> R {
    let _scope = PoolScope::enter(pool);
    body()
}

/// While alive, this thread's allocations on a pool's device come from the pool; [`with_pool`] is
/// easier to use.
#[must_use = "the pool is used only while the guard lives"]
#[derive(Debug)]
pub struct PoolScope {
    /// How many scopes were open before.
    depth: usize,
    /// Open as long as the scope is: nobody could close it after that.
    #[allow(dead_code, reason = "held for its drop")]
    pool: MemPool,
    // Guards put thread-local state back, so they must not move to another thread.
    not_send: PhantomData<*const ()>,
}

impl PoolScope {
    /// Uses `pool` until the guard drops.
    pub fn enter(pool: &MemPool) -> PoolScope {
        SCOPES.fetch_add(1, Ordering::Relaxed);
        let depth = CURRENT.with_borrow_mut(|pools| {
            pools.push((pool.device.slot(), pool.shared.pool.id()));
            pools.len() - 1
        });
        PoolScope { depth, pool: pool.clone(), not_send: PhantomData }
    }
}

impl Drop for PoolScope {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|pools| pools.borrow_mut().truncate(self.depth));
        SCOPES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One of the captures that [`current_pool`] looks for, until it is dropped.
#[derive(Debug)]
pub(crate) struct CaptureOfPool(());

impl CaptureOfPool {
    pub(crate) fn open() -> CaptureOfPool {
        SCOPES.fetch_add(1, Ordering::Relaxed);
        CaptureOfPool(())
    }
}

impl Drop for CaptureOfPool {
    fn drop(&mut self) {
        SCOPES.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{self, StandIn};
    use crate::{DType, Result, Tensor};

    fn devices() -> Result<[Device; 2]> {
        let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
        Ok([device::private_cpu(&Default::default())?, device::stand_in(stand_in)?])
    }

    #[test]
    fn results_and_workspaces_come_from_the_pool_of_the_thread() -> Result<()> {
        for device in devices()? {
            let ones = || Tensor::ones(&[300, 300], (DType::F32, device));
            let (pool, graph) = (MemPool::new(device), MemPool::for_graph(device));
            assert!(pool.id().0 == 0 && graph.id().1 == 0 && pool.id() != graph.id());
            let inside = with_pool(&pool, || {
                let x = ones()?;
                let y = x.matmul(&x)?.sum_with(0)?;
                let nested = with_pool(&graph, ones)?;
                let elsewhere = std::thread::scope(|s| s.spawn(ones).join());
                assert!(elsewhere.is_ok());
                Ok::<_, crate::Error>((y, nested))
            })?;
            let common = entry(device).arena().pool_usage(PoolId::COMMON);
            assert_eq!(common.active_bytes, 0, "nothing came from there but the other thread's");
            assert_eq!(graph.usage().active_bytes, 360_448, "360,000 bytes, rounded to 512");
            assert_eq!(pool.usage().active_bytes, 1536, "300 floats, rounded to 512");
            drop(inside);
            assert_eq!((pool.usage().active_bytes, graph.usage().active_bytes), (0, 0));
            assert!(pool.usage().reserved_bytes >= 2 << 20);
            entry(device).arena().check_balanced().expect("balanced");
        }
        Ok(())
    }

    #[test]
    fn a_pool_that_goes_inside_of_its_scope_is_released_after_it() -> Result<()> {
        for device in devices()? {
            let arena = entry(device).arena();
            let pool = MemPool::new(device);
            let scope = PoolScope::enter(&pool);
            drop(pool);
            let tensor = Tensor::zeros(&[30 << 20], (DType::U8, device))?;
            drop(tensor);
            device::synchronize(device)?;
            assert_eq!(arena.stats().reserved_bytes.all.current, 30 << 20, "the scope's");
            drop(scope);
            assert_eq!(arena.stats().reserved_bytes.all.current, 0);
            arena.check_balanced().expect("balanced");
        }
        Ok(())
    }

    #[test]
    fn a_pool_is_released_as_a_whole_once_its_tensors_are_gone() -> Result<()> {
        for device in devices()? {
            let arena = entry(device).arena();
            let pool = MemPool::new(device);
            let make = |bytes: i64| Tensor::zeros(&[bytes], (DType::U8, device));
            let (kept, large) = with_pool(&pool, || (make(1000), make(30 << 20)));
            let kept = kept?;
            drop(large?);
            device::synchronize(device)?;
            assert_eq!(arena.empty_cache(), 0, "an open pool keeps its segments");
            let reserved = arena.stats().reserved_bytes.all.current;
            assert_eq!(reserved, (30 << 20) + (2 << 20));
            let other = make(20 << 20)?;
            let more = arena.stats().reserved_bytes.all.current - reserved;
            assert_eq!(more, 20 << 20, "30 MiB are free, and not for everybody");
            drop((other, pool));
            let left = arena.empty_cache();
            assert_eq!(left, 20 << 20, "the pool's free segment had gone already");
            assert_eq!(arena.stats().reserved_bytes.all.current, 2 << 20);
            drop(kept);
            device::synchronize(device)?;
            assert_eq!(arena.stats().reserved_bytes.all.current, 0);
            arena.check_balanced().expect("balanced");
        }
        Ok(())
    }
}
