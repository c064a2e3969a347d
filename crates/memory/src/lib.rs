//! Plimsoll's one way to memory: the caching allocator over a small [`Source`], and the ledger that
//! every byte of it is written in.
//!
//! Start with [`Arena`]: it is one device's memory. `allocate.rs` is the page to read first; it
//! shows how a [`Request`] becomes a [`Block`]. Every change is an [`Event`] in the ledger, which
//! statistics, history and reports read. Every block has an origin ([`OriginId`]): which operation
//! and line asked for it, in which module and phase.

mod advice;
mod allocate;
mod annotations;
mod arena;
mod audit;
mod bin_heap;
mod block;
mod breakdown;
mod clock;
mod configuration;
mod context;
mod deferred;
mod event;
mod evict;
mod external;
mod fork;
mod history;
mod kind;
mod ledger;
mod limits;
mod lock;
mod oom;
mod origin;
mod peak_scope;
mod pools;
mod prefetch;
mod private_pool;
mod quiet;
mod records;
mod release;
mod request;
mod site;
mod size_class;
mod snapshot;
mod source;
mod sources;
mod stamp;
mod state;
mod stats;
mod summary;
mod system_memory;
mod view;

pub use advice::Advice;
pub use annotations::{Annotation, AnnotationScope, Stage, annotate};
pub use arena::{Arena, OomObserver, Reclaim};
pub use block::Block;
pub use breakdown::Row;
pub use configuration::{
    CONFIGURATION_VARIABLE, Configuration, ConfigurationBuilder, GivenBy, Key, Setting, SimdLevel,
};
pub use context::{
    ModulePath, ModuleScope, OperationScope, Phase, PhaseScope, current_module, current_operation,
    current_phase, current_step, enter_module, enter_operation, enter_phase, resume_module,
    set_step,
};
pub use event::{Action, Event};
pub use evict::{Owner, Run, Shortage};
pub use external::External;
pub use history::{Entry, HistoryLevel};
pub use kind::Kind;
pub use limits::LimitKind;
pub use oom::OutOfMemory;
pub use origin::{Origin, OriginId};
pub use peak_scope::PeakScope;
pub use private_pool::{PoolId, PoolPurpose, PoolUse, PrivatePool};
pub use quiet::Holding;
pub use request::Request;
pub use site::{ResolvedSite, Site, SiteScope, set_foreign_resolver, with_site};
pub use size_class::Pool;
pub use snapshot::{DeviceSnapshot, Snapshot};
pub use source::{Fence, FenceState, Room, Source, SourceFull, StreamId};
pub use sources::{DrySource, HostSource, PinnedSource, RegisterPinned};
pub use stats::{PoolStat, Stat, Stats};
pub use summary::memory_summary;
pub use system_memory::SystemMemory;
pub use view::{BlockUse, BlockView, SegmentView};
