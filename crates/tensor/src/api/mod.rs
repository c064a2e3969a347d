//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like
//! `ops/`. Each method notes its caller's line once, turns its arguments into an operation value
//! and hands both to `dispatch`.

pub(crate) mod activation;
pub(crate) mod adamw;
mod antialias;
pub(crate) mod aten;
pub(crate) mod attention;
pub(crate) mod batch_norm;
pub(crate) mod binary;
pub(crate) mod clamp;
mod compare;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod ctc;
mod data;
pub(crate) mod derived;
pub(crate) mod distance;
pub(crate) mod draws;
pub(crate) mod embedding;
pub(crate) mod extremes;
pub(crate) mod finite_differences;
pub(crate) mod foreign;
mod gelu_linear;
pub(crate) mod grid;
pub(crate) mod group_norm;
mod index;
pub(crate) mod interpolate;
mod interpolate_bytes;
mod join;
pub(crate) mod linalg;
pub(crate) mod linear_cross_entropy;
pub(crate) mod loss;
pub(crate) mod lp_pool;
mod masks;
pub(crate) mod membership;
mod native_norm;
pub(crate) mod nn;
pub(crate) mod norm;
mod norms;
pub(crate) mod numeric;
pub(crate) mod optim;
pub(crate) mod options;
mod orders;
pub(crate) mod pad;
pub(crate) mod parameter;
pub(crate) mod pool;
mod random;
mod read;
mod rearrange;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod reshape;
mod roles;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod search;
mod select;
mod sequences;
mod shuffle;
pub(crate) mod sort;
pub(crate) mod split;
pub(crate) mod stacks;
pub(crate) mod statistics;
pub(crate) mod subscript;
pub(crate) mod ternary;
mod transfer;
mod triangle;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod unpool;
mod unscale;
mod view_copies;
mod view_scatter;
pub(crate) mod views;
use plimsoll_memory::{Site, enter_operation, with_site};

use crate::autocast::enter_composed;

/// Runs `work`, which is made of other operations: what they allocate counts for `name` and for the
/// caller's line, and mixed precision treats them as it does `name`.
pub(crate) fn composed<R>(name: &'static str, site: Site, work: impl FnOnce() -> R) -> R {
    let _named = enter_operation(name);
    let _cast = enter_composed(name);
    with_site(site, work)
}
