//! A storage is the memory behind one or more tensors: a block of the device's arena, wherever it
//! is at the moment, with the version that autograd compares and the roles that name its kind in
//! the ledger.
//!
//! Kernels reach its bytes in a fixed order: pin (and make resident), then claim, then launch. See
//! `claim.rs` for why there are no lock guards, `residency.rs` for how memory is taken back and
//! brought home again.

pub(crate) mod chaos;
pub(crate) mod claim;
pub(crate) mod dependents;
mod foreign;
pub(crate) mod pin;
pub(crate) mod provenance;
pub(crate) mod recipe;
pub(crate) mod reclaim;
mod release;
mod residency;
pub(crate) mod roles;
pub(crate) mod stream_order;
pub(crate) mod whereabouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use plimsoll_core::{Device, Result};
use plimsoll_memory::{Arena, Block, Kind, OriginId, Owner, PoolId, Request, StreamId};

use crate::device::{self, Entry};
use crate::lock::Mutex;
use crate::tensor::registry;
use claim::Access;
use provenance::Provenance;
use roles::Roles;
use stream_order::StreamUses;
use whereabouts::Whereabouts;

/// The number of the next storage that may be taken away.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// The memory behind tensors. Freed the moment the last tensor on it goes.
pub struct Storage {
    entry: &'static Entry,
    /// Bytes that tensors may reach: what was requested.
    bytes: usize,
    /// Whether the bytes may be taken away while nobody has them pinned: the device took memory
    /// back when this was made, and lists it (`reclaim.rs`). Pins of others cost nothing.
    movable: bool,
    /// Whether somebody outside knows where the bytes are; see `dependents.rs`.
    exposed: AtomicBool,
    /// Whether somebody outside would miss larger memory in its place.
    fixed_size: AtomicBool,
    /// The number by which the arena and watches know it, if it is movable: later ones have higher
    /// ones.
    number: u32,
    /// Pins and presence in one word; see `pin.rs`.
    pins: AtomicU32,
    /// Where the bytes are, valid while pinned.
    address: AtomicUsize,
    place: Mutex<Whereabouts>,
    access: Access,
    /// Writes that every tensor on this storage counts; see `tensor/versions.rs`.
    version: AtomicU32,
    /// Writes through handles that count on their own.
    aside: AtomicU32,
    /// The number of the origin of the newest write after creation.
    last_writer: AtomicU32,
    roles: Roles,
    /// The stream that the memory belongs to, and work of asynchronous devices that touched it.
    pub(crate) uses: StreamUses,
    provenance: Provenance,
}

impl Storage {
    /// Takes `bytes` from the device's arena for the operation of `origin`.
    pub(crate) fn allocate(
        entry: &'static Entry,
        bytes: usize,
        origin: OriginId,
        kind: Kind,
    ) -> Result<Arc<Storage>> {
        Storage::allocate_in(entry, entry.arena(), bytes, origin, kind)
    }

    /// The same from another arena of the device (pinned host memory).
    pub(crate) fn allocate_in(
        entry: &'static Entry,
        arena: &'static Arena,
        bytes: usize,
        origin: OriginId,
        kind: Kind,
    ) -> Result<Arc<Storage>> {
        entry.check_configuration()?;
        let stream = entry.current_stream();
        let pool = if std::ptr::eq(arena, entry.arena()) {
            device::current_pool(entry)
        } else {
            PoolId::COMMON
        };
        let request = Request { bytes, origin, kind, stream, pool };
        let block = arena.allocate(&request).map_err(registry::with_holders)?;
        // A private pool's blocks stay where they are: a graph writes to their addresses.
        let movable = entry.reclaimable().is_on() && pool == PoolId::COMMON;
        let storage = Storage::over(entry, block, bytes, kind, (stream, movable));
        if pool != PoolId::COMMON
            && let Some(capture) = entry.captures().of(stream)
        {
            capture.adopt(&storage);
        }
        Ok(storage)
    }

    /// The same for memory that is never taken back: what a recipe makes on its way.
    fn allocate_fixed(
        entry: &'static Entry,
        bytes: usize,
        origin: OriginId,
        kind: Kind,
    ) -> Result<Arc<Storage>> {
        let stream = entry.current_stream();
        let block =
            entry.arena().allocate(&Request { kind, stream, ..Request::new(bytes, origin) })?;
        let (address, place) = (block.address(), Whereabouts::Resident(block));
        Ok(Arc::new(Storage::at(entry, place, address, bytes, kind, stream, false)))
    }

    fn over(
        entry: &'static Entry,
        block: Block,
        bytes: usize,
        kind: Kind,
        (home, movable): (StreamId, bool),
    ) -> Arc<Storage> {
        let address = block.address();
        if !movable {
            let place = Whereabouts::Resident(block);
            return Arc::new(Storage::at(entry, place, address, bytes, kind, home, movable));
        }
        Storage::movable(entry, block, bytes, kind, home)
    }

    /// One that may be taken back: its device lists it, and the arena knows whose the block is.
    #[cold]
    fn movable(
        entry: &'static Entry,
        block: Block,
        bytes: usize,
        kind: Kind,
        home: StreamId,
    ) -> Arc<Storage> {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        block.set_owner(Owner::new(number));
        let (address, place) = (block.address(), Whereabouts::Resident(block));
        let mut storage = Storage::at(entry, place, address, bytes, kind, home, true);
        storage.number = number;
        let storage = Arc::new(storage);
        entry.reclaimable().add(&storage);
        storage
    }

    #[inline]
    fn at(
        entry: &'static Entry,
        place: Whereabouts,
        address: usize,
        bytes: usize,
        kind: Kind,
        home: StreamId,
        movable: bool,
    ) -> Storage {
        Storage {
            entry,
            bytes,
            movable,
            exposed: AtomicBool::new(false),
            fixed_size: AtomicBool::new(false),
            number: 0,
            pins: AtomicU32::new(0),
            address: AtomicUsize::new(address),
            place: Mutex::new(place),
            access: Access::new(),
            version: AtomicU32::new(0),
            aside: AtomicU32::new(0),
            last_writer: AtomicU32::new(OriginId::UNKNOWN.number() as u32),
            roles: Roles::born_as(kind),
            uses: StreamUses::new(home),
            provenance: Provenance::default(),
        }
    }

    /// The device whose memory this is.
    pub fn device(&self) -> Device {
        self.entry.device()
    }

    pub(crate) fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Bytes that tensors may reach.
    pub fn nbytes(&self) -> usize {
        self.bytes
    }

    /// How many writes happened after creation that autograd counts. Shared by every tensor on
    /// this storage but those of [`Tensor::data`](crate::Tensor::data), which count on their own.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// How many writes happened after creation, whoever made them: whether the bytes are still
    /// what they were. Each part only grows, so equal sums mean equal parts.
    pub(crate) fn writes(&self) -> u32 {
        self.version().wrapping_add(self.aside.load(Ordering::Acquire))
    }

    /// Counts a write by `writer`. Called under a write claim.
    pub(crate) fn written_by(&self, writer: OriginId) {
        self.last_writer.store(writer.number() as u32, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Counts a write by `writer` that autograd does not see. Called under a write claim.
    pub(crate) fn written_aside(&self, writer: OriginId) {
        self.last_writer.store(writer.number() as u32, Ordering::Relaxed);
        self.aside.fetch_add(1, Ordering::Release);
    }

    /// Who wrote last; unknown if nobody did after creation.
    pub(crate) fn last_writer(&self) -> OriginId {
        OriginId::from_number(self.last_writer.load(Ordering::Relaxed) as usize)
    }

    /// Whether the memory is pinned host memory, which accelerators copy from and to without
    /// waiting.
    pub(crate) fn is_page_locked(&self) -> bool {
        // Asking does not make the arena of pinned memory, nor open a GPU.
        device::pinned_if_open().is_some()
            && self.entry.device().is_cpu()
            && self.place.lock().block().is_some_and(device::is_pinned_block)
    }

    /// The block that has the bytes: the address of its arena, and its own. `None` if they are not
    /// ours, were dropped, or are on their way.
    pub(crate) fn block_place(&self) -> Option<(usize, usize)> {
        let place = self.place.try_lock()?;
        place.block().map(|block| (std::ptr::from_ref(block.arena()).addr(), block.address()))
    }

    /// What tells the memory apart in a watch: the block that has the bytes, or, of a storage that
    /// may be taken away, its own number, which it keeps wherever the bytes go. `None` if they are
    /// not ours, or on their way.
    pub(crate) fn watch_key(&self) -> Option<(usize, usize)> {
        // No arena lies at address 0.
        if self.movable { Some((0, self.number as usize)) } else { self.block_place() }
    }

    /// Its number, if it may be taken away.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The number that the next storage that may be taken away gets.
    pub(crate) fn following_number() -> u32 {
        NEXT_NUMBER.load(Ordering::Relaxed)
    }

    /// The origin of the memory itself, wherever it is; `None` if it is not ours.
    pub(crate) fn origin(&self) -> Option<OriginId> {
        origin_at(&self.place.lock())
    }

    /// The same without waiting for whoever moves the bytes; `None` then too.
    pub(crate) fn origin_if_free(&self) -> Option<OriginId> {
        origin_at(&*self.place.try_lock()?)
    }
}

fn origin_at(place: &Whereabouts) -> Option<OriginId> {
    match place {
        Whereabouts::Dropped(recipe) => Some(recipe.home.0),
        place => place.block().map(Block::origin),
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if matches!(self.place.get_mut(), Whereabouts::Foreign(_)) {
            // Its owner knows nothing of our streams: what they still do with it must be done.
            self.entry.wait_for_uses(self);
        }
        let place = self.place.get_mut();
        match place {
            // Work queued on other streams may still touch the bytes: the arena must wait for those
            // streams.
            Whereabouts::Resident(block) => {
                self.uses.for_each_foreign_mut(|stream| block.record_use(stream));
            }
            Whereabouts::Dropped(_) | Whereabouts::Spilled(_) => {
                match std::mem::replace(place, Whereabouts::Moving) {
                    Whereabouts::Dropped(recipe) => release::recipe(*recipe),
                    Whereabouts::Spilled(spilled) => self.let_go(spilled),
                    _ => {}
                }
            }
            Whereabouts::Foreign(_) | Whereabouts::Moving => {}
        }
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("device", &self.entry.device())
            .field("bytes", &self.bytes)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
