//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like
//! `ops/`. Each method notes its caller's line once, turns its arguments into an operation value
//! and hands both to `dispatch`.

pub(crate) mod batch_norm;
pub(crate) mod binary;
mod compare;
pub(crate) mod copy;
pub(crate) mod create;
mod data;
mod draws;
pub(crate) mod foreign;
mod index;
mod join;
mod linalg;
mod masks;
pub(crate) mod nn;
pub(crate) mod optim;
pub(crate) mod options;
mod orders;
pub(crate) mod pad;
pub(crate) mod parameter;
mod random;
mod read;
mod rearrange;
pub(crate) mod reduce;
pub(crate) mod reshape;
mod roles;
mod scatter;
mod select;
mod sequences;
pub(crate) mod sort;
pub(crate) mod split;
pub(crate) mod stacks;
pub(crate) mod subscript;
mod transfer;
mod triangle;
pub(crate) mod unary;
mod view_copies;
mod view_scatter;
pub(crate) mod views;
