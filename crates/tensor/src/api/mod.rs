//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like
//! `ops/`. Each method notes its caller's line once, turns its arguments into an operation value
//! and hands both to `dispatch`.

pub(crate) mod batch_norm;
pub(crate) mod binary;
mod compare;
pub(crate) mod copy;
pub(crate) mod create;
mod data;
pub(crate) mod extremes;
pub(crate) mod foreign;
mod index;
mod join;
mod linalg;
pub(crate) mod nn;
pub(crate) mod norm;
pub(crate) mod optim;
pub(crate) mod options;
pub(crate) mod parameter;
mod random;
mod read;
pub(crate) mod reduce;
mod roles;
pub(crate) mod scan;
pub(crate) mod search;
mod select;
pub(crate) mod sort;
pub(crate) mod statistics;
pub(crate) mod subscript;
mod transfer;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod views;
