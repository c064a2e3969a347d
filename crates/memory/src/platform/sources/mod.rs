//! The sources: where segments come from on each sort of device. A source knows nothing of blocks,
//! caching or counters; see `source.rs` for the trait and `allocate.rs` for who calls it.

mod dry;
mod host;
mod host_pages;
mod pinned;

pub use dry::DrySource;
pub use host::HostSource;
pub use host_pages::HostPages;
pub use pinned::{PinnedSource, RegisterPinned};
