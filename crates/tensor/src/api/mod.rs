//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like `ops/`. Each method notes its caller's line once, turns its
//! arguments into an operation value and hands both to `dispatch`.

mod binary;
mod compare;
pub(crate) mod copy;
pub(crate) mod create;
mod data;
pub(crate) mod foreign;
mod index;
mod join;
mod linalg;
mod nn;
pub(crate) mod options;
mod overlap;
mod pow;
pub(crate) mod promotion;
mod random;
mod read;
mod reduce;
mod roles;
mod select;
mod sort;
mod transfer;
mod unary;
mod views;
