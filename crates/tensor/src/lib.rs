//! Plimsoll's tensors: storage, dispatch, operations, kernels and autograd.

mod element;
pub mod kernels;
mod operand;
pub mod parallel;

pub use element::{Element, Truth};
pub use operand::{CpuLaunch, Meta, Operand, Workspace};
