//! Plimsoll's tensors: storage, dispatch, operations, kernels and autograd.

pub mod kernels;
pub mod parallel;
