//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like
//! `ops/`. Each method notes its caller's line once, turns its arguments into an operation value
//! and hands both to `dispatch`.

pub(crate) mod batch_norm;
pub(crate) mod binary;
mod compare;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod create;
mod data;
pub(crate) mod foreign;
mod index;
mod join;
pub(crate) mod linalg;
pub(crate) mod lp_pool;
pub(crate) mod nn;
pub(crate) mod optim;
pub(crate) mod options;
pub(crate) mod parameter;
pub(crate) mod pool;
mod random;
mod read;
pub(crate) mod reduce;
mod roles;
mod select;
mod shuffle;
pub(crate) mod sort;
pub(crate) mod subscript;
mod transfer;
pub(crate) mod unary;
pub(crate) mod unpool;
pub(crate) mod views;
use plimsoll_memory::{Site, enter_operation, with_site};

/// Runs `work`, which is made of other operations: what they allocate counts for `name` and for the
/// caller's line.
pub(crate) fn composed<R>(name: &'static str, site: Site, work: impl FnOnce() -> R) -> R {
    let _named = enter_operation(name);
    with_site(site, work)
}
