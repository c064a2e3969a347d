//! Plimsoll's one way to memory: the caching allocator over a small [`Source`], and the ledger that
//! every byte of it is written in.
//!
//! Start with [`Arena`]: it is one device's memory. `allocate.rs` is the page to read first; it
//! shows how a [`Request`] becomes a [`Block`]. Every change is an [`Event`] in the ledger, which
//! statistics, history and reports read. Every block has an origin ([`OriginId`]): which operation
//! and line asked for it, in which module and phase.

mod allocator;
mod book;
mod configuration;
mod origin;
mod platform;
mod snapshot;

pub use allocator::advice::Advice;
pub use allocator::arena::{Arena, OomObserver, Reclaim};
pub use allocator::block::Block;
pub use allocator::evict::Run;
pub use allocator::external::External;
pub use allocator::limits::LimitKind;
pub use allocator::oom::OutOfMemory;
pub use allocator::peak_scope::PeakScope;
pub use allocator::pool_id::{PoolId, PoolPurpose};
pub use allocator::private_pool::{PoolUse, PrivatePool};
pub use allocator::request::Request;
pub use allocator::shortage::{Owner, Shortage};
pub use book::breakdown::{BreakdownRow, Share};
pub use book::event::{Action, Event};
pub use book::history::Entry;
pub use book::pool::Pool;
pub use book::stats::{PoolStat, Stat, Stats};
pub use book::summary::memory_summary;
pub use book::watch::{BookChange, BookObserver, Watching, watch_books};
pub use configuration::{
    CONFIGURATION_VARIABLE, Configuration, ConfigurationBuilder, GivenBy, HistoryLevel, Key,
    Setting, SimdLevel,
};
pub use origin::annotations::{Annotation, AnnotationScope, Stage, annotate};
pub use origin::calls::{CallHook, hear_calls};
pub use origin::context::{
    ModulePath, ModuleScope, OperationScope, Phase, PhaseScope, current_module, current_operation,
    current_phase, enter_module, enter_operation, enter_phase, resume_module,
};
pub use origin::intern::{Origin, OriginId};
pub use origin::iteration::{
    current_epoch, current_step, epoch_of_step, next_epoch, next_step, set_epoch, set_step,
};
pub use origin::kind::Kind;
pub use origin::site::{ResolvedSite, Site, SiteScope, set_foreign_resolver, with_site};
pub use platform::fork::Holding;
pub use platform::mapped_file::MappedFile;
pub use platform::source::{AddressSpace, Fence, FenceState, Room, Source, SourceFull, StreamId};
pub use platform::sources::{DrySource, HostPages, HostSource, PinnedSource, RegisterPinned};
pub use platform::system_memory::SystemMemory;
pub use snapshot::view::{BlockUse, BlockView, SegmentView};
pub use snapshot::{DeviceSnapshot, Snapshot};
