//! Plimsoll's tensors: storage, dispatch, operations and autograd.
//!
//! Read `dispatch` first: every operation takes that one path. `api` is what users call, `ops` what operations are (their
//! loops are in the `kernels` crate), `storage` whose bytes they are, `autograd` what is remembered, `device` where it all happens.

mod api;
mod autograd;
mod companion;
mod cuda;
pub mod device;
mod dispatch;
mod display;
mod drop_in_turn;
mod launch;
pub mod memory;
pub mod operation;
mod ops;
mod random;
mod storage;
mod tensor;
mod transfer;

pub use api::copy::To;
pub use api::create::fits;
pub use api::foreign::Lent;
pub use api::options::{Other, TensorOptions};
pub use api::promotion::result_type;
pub use autograd::{
    BackwardOptions, EnableGrad, GradFn, GradOptions, GraphNode, Hook, HookHandle, InferenceMode,
    NoGrad, enable_grad, grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    walk,
};
pub use device::{Event, Stream, StreamScope, with_stream};
pub use ops::{OPS, ops};
pub use plimsoll_core::{DType, Device, DeviceKind, Error, ErrorKind, Result, Scalar};
pub use plimsoll_kernels::{CpuLaunch, Element, Meta, Operand, Truth, Workspace, parallel};
pub use random::{Draws, manual_seed, manual_seed_on};
pub use storage::Storage;
pub use tensor::{Tensor, WeakTensor};
