//! One device's memory: a source, the caching allocator over it, and its ledger. Devices own
//! arenas, and an arena lives for ever, so blocks can refer to it without counting.
//!
//! This file is the public face. How a request becomes a block is in `allocate.rs`, the way back in
//! `release.rs`, what the lock guards in `state.rs`.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use plimsoll_core::Device;

use crate::allocator::limits::{LimitKind, Limits};
use crate::allocator::oom::OutOfMemory;
use crate::allocator::records::NONE;
use crate::allocator::shortage::Shortage;
use crate::allocator::size_class::SizeRules;
use crate::allocator::state::State;
use crate::book::breakdown::{BreakdownRow, Moment, Share, shares};
use crate::book::event::Action;
use crate::book::history::Entry;
use crate::book::stamp::Stamp;
use crate::book::stats::Stats;
use crate::book::watch;
use crate::configuration::Configuration;
use crate::configuration::HistoryLevel;
use crate::origin::context::{ModulePath, Phase};
use crate::origin::hold_tables_at_fork;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::fork::{HeldAtFork, hold_at_fork};
use crate::platform::lock::{Guard, Lock};
use crate::platform::source::{Source, StreamId};

/// Something that can give live memory back, by spilling it or by dropping what can be rebuilt.
pub trait Reclaim: Send + Sync + 'static {
    /// Tries to free as much of the arena's live memory as `shortage` asks for; returns how many
    /// bytes it freed, 0 if none. Called without any lock of the arena, on the thread whose
    /// allocation found no room.
    fn reclaim(&self, shortage: &Shortage) -> usize;
}

/// Called with each out-of-memory report before the error is returned, without any lock of the
/// arena.
pub type OomObserver = Box<dyn Fn(&OutOfMemory) + Send + Sync>;

/// One device's memory.
///
/// ```
/// use plimsoll_core::Device;
/// use plimsoll_memory::{Arena, Configuration, HostSource, OriginId, Request, Site};
///
/// let source = Box::new(HostSource::default());
/// let arena = Arena::open(Device::cpu(), source, &Configuration::default());
/// let origin = OriginId::intern("zeros", Site::caller());
/// let block = arena.allocate(&Request::new(1000, origin))?;
/// assert_eq!(block.allocated_bytes(), 1024);
/// assert_eq!(arena.live_bytes(), 1024);
/// drop(block);
/// assert_eq!(arena.live_bytes(), 0);
/// assert_eq!(arena.stats().reserved_bytes.all.current, 2 << 20);
/// assert_eq!(arena.empty_cache(), 2 << 20);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub struct Arena {
    device: Device,
    /// What reports call it, where the device has several: `cpu:pinned`.
    name: Option<&'static str>,
    source: Box<dyn Source>,
    rules: SizeRules,
    state: Lock<State>,
    /// Held by the one thread that gives segments back; taken before `state`. See `release.rs`.
    releasing: Lock<()>,
    reclaimer: Lock<Option<&'static dyn Reclaim>>,
    observers: Lock<Vec<&'static OomObserver>>,
    /// A copy of the history's level, so that events are stamped before the lock is taken. Written
    /// under the lock only.
    history_level: AtomicU8,
}

impl HeldAtFork for Arena {
    fn hold(&'static self) -> Box<dyn Any> {
        let (releasing, state) = (self.releasing.lock(), self.state.lock());
        Box::new((releasing, state, self.reclaimer.lock(), self.observers.lock()))
    }
}

impl Arena {
    /// Opens an arena over `source`. It lives for ever.
    pub fn open(
        device: Device,
        source: Box<dyn Source>,
        configuration: &Configuration,
    ) -> &'static Arena {
        Arena::open_as(device, None, source, configuration)
    }

    /// As [`Arena::open`], for a device that has several arenas: reports call this one `name`.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource};
    /// let source = Box::new(HostSource::default());
    /// let spill = Arena::open_named(Device::cpu(), "cpu:spill", source, &Configuration::default());
    /// assert_eq!(spill.name(), "cpu:spill");
    /// ```
    pub fn open_named(
        device: Device,
        name: &'static str,
        source: Box<dyn Source>,
        configuration: &Configuration,
    ) -> &'static Arena {
        Arena::open_as(device, Some(name), source, configuration)
    }

    fn open_as(
        device: Device,
        name: Option<&'static str>,
        source: Box<dyn Source>,
        configuration: &Configuration,
    ) -> &'static Arena {
        let mut rules = SizeRules::new(configuration);
        if configuration.expandable_segments && rules.caching && source.address_space().is_ok() {
            rules = rules.expanding(source.room().total_bytes);
        }
        let limits = Limits::new(configuration, &*source);
        let mut state = State::new(rules.clone(), limits);
        state.ledger.owner = (device, name);
        state.ledger.history.set(configuration.history_level, configuration.history_entries);
        let arena: &'static Arena = Box::leak(Box::new(Arena {
            device,
            name,
            source,
            rules,
            state: Lock::new(state),
            releasing: Lock::new(()),
            reclaimer: Lock::new(None),
            observers: Lock::new(Vec::new()),
            history_level: AtomicU8::new(configuration.history_level as u8),
        }));
        hold_tables_at_fork();
        hold_at_fork(&[&watch::OBSERVERS]);
        hold_at_fork(&[arena]);
        arena
    }

    /// The device whose memory this is.
    pub fn device(&self) -> Device {
        self.device
    }

    /// What reports call it: the device's name, or its own where the device has several arenas.
    pub fn name(&self) -> String {
        self.name.map_or_else(|| self.device.to_string(), str::to_string)
    }

    /// Where its segments come from.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Whether its segments grow and shrink by pages: that takes the setting, and a source with
    /// addresses apart from its memory.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, DrySource, HostSource, OriginId, Request};
    /// let configuration = Configuration::parse("expandable_segments:True")?;
    /// let source = Box::new(DrySource::new(Some(1 << 30)));
    /// let arena = Arena::open(Device::cpu(), source, &configuration);
    /// assert!(arena.has_expandable_segments());
    /// let first = arena.allocate(&Request::new(12 << 20, OriginId::UNKNOWN))?;
    /// let second = arena.allocate(&Request::new(12 << 20, OriginId::UNKNOWN))?;
    /// // The second lies right behind the first, over the edge of a page.
    /// assert_eq!(second.address(), first.address() + (12 << 20));
    /// assert_eq!(arena.stats().reserved_bytes.all.current, 40 << 20);
    ///
    /// let host = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// assert!(!host.has_expandable_segments());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn has_expandable_segments(&self) -> bool {
        self.rules.expandable
    }

    #[inline]
    pub(crate) fn rules(&self) -> &SizeRules {
        &self.rules
    }

    #[inline]
    pub(crate) fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn releasing(&self) -> Guard<'_, ()> {
        self.releasing.lock()
    }

    /// The lowest limit on reserved bytes in force, and which one it is.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// assert_eq!(arena.set_limit(Some(1 << 30)), None);
    /// assert_eq!(arena.limit().unwrap().0, 1 << 30);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn limit(&self) -> Option<(usize, LimitKind)> {
        self.state().limits.lowest()
    }

    /// The most bytes that may be reserved from now on; returns the previous limit. What is
    /// reserved already stays.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// arena.set_limit(Some(1 << 20));
    /// let error = arena.allocate(&Request::new(4 << 20, OriginId::UNKNOWN)).unwrap_err();
    /// assert!(error.is_out_of_memory());
    /// assert_eq!(arena.set_limit(None), Some(1 << 20));
    /// arena.allocate(&Request::new(4 << 20, OriginId::UNKNOWN))?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn set_limit(&self, bytes: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.state().limits.hard_bytes, bytes)
    }

    /// Bytes above which cached memory is given back and the program asked for more, before any
    /// more is reserved; returns the previous one. It never fails an allocation.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// assert_eq!(arena.set_soft_limit(Some(1 << 20)), None);
    /// arena.allocate(&Request::new(4 << 20, OriginId::UNKNOWN))?; // above it, and still served
    /// assert_eq!(arena.set_soft_limit(None), Some(1 << 20));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn set_soft_limit(&self, bytes: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.state().limits.soft_bytes, bytes)
    }

    /// The share of the device's memory that may be reserved; 1 is no limit. Returns the previous
    /// one. What is not between 0 and 1 is taken as the nearer of them.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// assert_eq!(arena.set_memory_fraction(0.5), 1.0);
    /// assert_eq!(arena.set_memory_fraction(7.0), 0.5);
    /// assert_eq!(arena.memory_fraction(), 1.0);
    /// assert_eq!(arena.set_memory_fraction(1.0), 1.0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn set_memory_fraction(&self, fraction: f64) -> f64 {
        let fraction = if fraction.is_nan() { 1.0 } else { fraction.clamp(0.0, 1.0) };
        std::mem::replace(&mut self.state().limits.fraction, fraction)
    }

    /// The share of the device's memory that may be reserved; 1 is no limit.
    pub fn memory_fraction(&self) -> f64 {
        self.state().limits.fraction
    }

    /// Who is asked to give live memory back when there is no room; returns the previous one.
    pub fn set_reclaimer(&self, reclaimer: &'static dyn Reclaim) -> Option<&'static dyn Reclaim> {
        self.reclaimer.lock().replace(reclaimer)
    }

    pub(crate) fn has_reclaimer(&self) -> bool {
        self.reclaimer.lock().is_some()
    }

    /// Asks the program for live memory; returns how many bytes it gave.
    pub(crate) fn reclaim(&self, shortage: &Shortage) -> usize {
        let reclaimer = *self.reclaimer.lock();
        reclaimer.map_or(0, |reclaimer| reclaimer.reclaim(shortage))
    }

    /// Adds a function that sees every out-of-memory report.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// arena.set_limit(Some(0));
    /// arena.add_oom_observer(Box::new(|report| assert_eq!(report.requested_bytes, 100)));
    /// assert!(arena.allocate(&Request::new(100, OriginId::UNKNOWN)).is_err());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn add_oom_observer(&self, observer: OomObserver) {
        self.observers.lock().push(Box::leak(Box::new(observer)));
    }

    pub(crate) fn observe(&self, report: &OutOfMemory) {
        let observers = self.observers.lock().clone();
        observers.into_iter().for_each(|observer| observer(report));
    }

    pub(crate) fn record_use(&self, index: u32, stream: StreamId) {
        self.state().record_use(index, stream);
    }

    /// Changes a live block's kind, in its record and in its handle's copy.
    pub(crate) fn change_kind(&self, index: u32, kind: Kind, copy: &AtomicU8) {
        let mut state = self.state();
        let from = Kind::from_number(copy.swap(kind as u8, Ordering::Relaxed));
        if index == NONE || from == kind {
            return;
        }
        state.blocks[index].kind = kind;
        let event = state.event(index, Action::KindChanged { from }, Stamp::default());
        state.ledger.kind_changed(&event, from);
    }

    /// Has a live block belong to another origin, in its record and in its handle's copy.
    pub(crate) fn change_origin(&self, index: u32, origin: OriginId, copy: &AtomicU32) {
        let mut state = self.state();
        let from = copy.swap(origin.number() as u32, Ordering::Relaxed);
        let from = OriginId::from_number(from as usize);
        if index == NONE || from == origin {
            return;
        }
        state.blocks[index].origin = origin;
        let stamp = Stamp { other_origin: Some(from), ..Stamp::default() };
        let event = state.event(index, Action::OriginChanged, stamp);
        state.ledger.origin_changed(&event);
    }

    /// Bytes of live blocks, after rounding, and of external memory.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// assert_eq!(arena.live_bytes(), 1024);
    /// drop(block);
    /// assert_eq!(arena.live_bytes(), 0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn live_bytes(&self) -> usize {
        let state = self.state();
        state.ledger.allocated_bytes() + state.ledger.external_bytes()
    }

    /// Bytes whose owner let go of them but that another stream still uses.
    pub fn pending_bytes(&self) -> usize {
        let mut state = self.state();
        state.finish_deferred();
        state.ledger.active_bytes() - state.ledger.allocated_bytes()
    }

    /// Every counter, at one moment.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// let stats = arena.stats();
    /// assert_eq!(stats.requested_bytes.all.current, 1000);
    /// assert_eq!(stats.allocated_bytes.small_pool.current, 1024);
    /// assert_eq!(stats.cached_bytes(), (2 << 20) - 1024);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.state().ledger.stats()
    }

    /// Peaks start again from now. Scoped peaks are not disturbed.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert_eq!(arena.stats().allocated_bytes.all.peak, 1024);
    /// arena.reset_peak_stats();
    /// assert_eq!(arena.stats().allocated_bytes.all.peak, 0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn reset_peak_stats(&self) {
        self.state().ledger.reset_peaks();
    }

    /// Totals (`allocated`, `freed` and the `num_` counters) start again from zero.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert_eq!(arena.stats().allocation.all.allocated, 1);
    /// arena.reset_accumulated_stats();
    /// assert_eq!(arena.stats().allocation.all.allocated, 0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn reset_accumulated_stats(&self) {
        self.state().ledger.reset_totals();
    }

    /// Live bytes by kind, largest first.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// block.set_kind(Kind::Parameter);
    /// let rows = arena.live_by_kind();
    /// assert_eq!((rows[0].kind, rows[0].bytes, rows[0].count), (Kind::Parameter, 1024, 1));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn live_by_kind(&self) -> Vec<BreakdownRow> {
        self.state().ledger.by_kind(Moment::Now)
    }

    /// Live bytes by origin and kind, largest first.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// use plimsoll_memory::Site;
    /// let origin = OriginId::intern("zeros", Site::caller());
    /// let block = arena.allocate(&Request::new(1000, origin))?;
    /// assert_eq!((arena.live_by_origin()[0].origin, arena.live_by_origin()[0].bytes), (origin, 1024));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn live_by_origin(&self) -> Vec<BreakdownRow> {
        self.state().ledger.by_origin(Moment::Now)
    }

    /// Bytes by kind as they were at the peak of allocated bytes; they add up to that peak.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert!(arena.live_by_kind().is_empty());
    /// assert_eq!(arena.peak_by_kind()[0].bytes, 1024);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn peak_by_kind(&self) -> Vec<BreakdownRow> {
        let state = self.state();
        state.ledger.by_kind(state.ledger.peak())
    }

    /// Bytes by origin and kind as they were at the peak of allocated bytes; they add up to that
    /// peak.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// use plimsoll_memory::Site;
    /// let origin = OriginId::intern("zeros", Site::caller());
    /// drop(arena.allocate(&Request::new(1000, origin))?);
    /// assert_eq!(arena.peak_by_origin()[0].origin, origin);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn peak_by_origin(&self) -> Vec<BreakdownRow> {
        let state = self.state();
        state.ledger.by_origin(state.ledger.peak())
    }

    /// Live bytes by module path, largest first; the root stands for what is outside of all.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// use plimsoll_memory::{Site, enter_module};
    /// let _module = enter_module("encoder");
    /// let block = arena.allocate(&Request::new(1000, OriginId::intern("add", Site::caller())))?;
    /// let rows = arena.live_by_module();
    /// assert_eq!((rows[0].part.to_string().as_str(), rows[0].bytes), ("encoder", 1024));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn live_by_module(&self) -> Vec<Share<ModulePath>> {
        shares(&self.live_by_origin(), |origin| origin.module)
    }

    /// Bytes by module path as they were at the peak of allocated bytes.
    pub fn peak_by_module(&self) -> Vec<Share<ModulePath>> {
        shares(&self.peak_by_origin(), |origin| origin.module)
    }

    /// Live bytes by the phase of training that they were made in, largest first.
    pub fn live_by_phase(&self) -> Vec<Share<Phase>> {
        shares(&self.live_by_origin(), |origin| origin.phase)
    }

    /// Bytes by phase as they were at the peak of allocated bytes.
    pub fn peak_by_phase(&self) -> Vec<Share<Phase>> {
        shares(&self.peak_by_origin(), |origin| origin.phase)
    }

    /// External bytes by origin and kind, largest first.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let mapped = arena.external(4096, OriginId::UNKNOWN, Kind::Input);
    /// assert_eq!(arena.external_by_origin()[0].bytes, 4096);
    /// drop(mapped);
    /// assert!(arena.external_by_origin().is_empty());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn external_by_origin(&self) -> Vec<BreakdownRow> {
        self.state().ledger.external_by_origin(Moment::Now)
    }

    /// How much of what happens is recorded, and how many events at most; returns the previous
    /// level.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// use plimsoll_memory::HistoryLevel;
    /// assert_eq!(arena.record_history(HistoryLevel::All, 1000), HistoryLevel::Off);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert!(!arena.history().is_empty());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn record_history(&self, level: HistoryLevel, max_entries: usize) -> HistoryLevel {
        let mut state = self.state();
        self.history_level.store(level as u8, Ordering::Relaxed);
        state.ledger.history.set(level, max_entries)
    }

    /// The level in force, or the one that was a moment ago.
    #[inline]
    pub(crate) fn history_level(&self) -> HistoryLevel {
        HistoryLevel::from_number(self.history_level.load(Ordering::Relaxed))
    }

    /// The recorded events, oldest first.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// use plimsoll_memory::HistoryLevel;
    /// arena.record_history(HistoryLevel::All, 2);
    /// for _ in 0..10 {
    ///     drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// }
    /// assert_eq!(arena.history().len(), 2); // the newest
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn history(&self) -> Vec<Entry> {
        self.state().ledger.history.entries()
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("device", &self.device)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
