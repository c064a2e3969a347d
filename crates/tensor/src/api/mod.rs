//! What users call: methods of [`crate::Tensor`] with PyTorch's names, one file a family like
//! `ops/`. Each method notes its caller's line once, turns its arguments into an operation value
//! and hands both to `dispatch`.

pub(crate) mod attention;
pub(crate) mod batch_norm;
pub(crate) mod binary;
mod compare;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod ctc;
mod data;
pub(crate) mod embedding;
pub(crate) mod foreign;
pub(crate) mod group_norm;
mod index;
pub(crate) mod interpolate;
mod join;
mod linalg;
pub(crate) mod loss;
pub(crate) mod nn;
pub(crate) mod optim;
pub(crate) mod options;
pub(crate) mod parameter;
mod random;
mod read;
pub(crate) mod reduce;
mod roles;
mod select;
pub(crate) mod sort;
pub(crate) mod subscript;
mod transfer;
pub(crate) mod unary;
pub(crate) mod views;
