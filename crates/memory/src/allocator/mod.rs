//! The caching allocator: [`Arena`](arena::Arena) is its face, `allocate.rs` the way of a request
//! to a block and the page to read first, `free.rs` the way back of a block, `release.rs` of a
//! segment, `pages.rs` what is different where segments expand.

pub(crate) mod advice;
pub(crate) mod allocate;
pub(crate) mod arena;
pub(crate) mod audit;
pub(crate) mod bin_heap;
pub(crate) mod block;
pub(crate) mod deferred;
pub(crate) mod evict;
pub(crate) mod external;
pub(crate) mod free;
pub(crate) mod limits;
pub(crate) mod oom;
pub(crate) mod pages;
pub(crate) mod peak_scope;
pub(crate) mod pool_id;
pub(crate) mod pools;
pub(crate) mod private_pool;
pub(crate) mod records;
pub(crate) mod release;
pub(crate) mod request;
pub(crate) mod run_out;
pub(crate) mod shortage;
pub(crate) mod size_class;
pub(crate) mod state;
