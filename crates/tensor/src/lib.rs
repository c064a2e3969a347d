//! Plimsoll's tensors: storage, dispatch, operations and autograd.
//!
//! Read `dispatch` first: every operation takes that one path. `api` is what users call, `ops` what operations are (their
//! loops are in the `kernels` crate), `storage` whose bytes they are, `autograd` what is remembered, `device` where it all happens.

mod api;
mod autograd;
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
pub use api::foreign::Lent;
pub use api::options::{Other, TensorOptions};
pub use api::promotion::result_type;
pub use autograd::{
    BackwardOptions, EnableGrad, GradOptions, GraphNode, HookHandle, InferenceMode, NoGrad,
    enable_grad, grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, walk,
};
pub use device::{Event, Stream, StreamScope, with_stream};
pub use ops::{OPS, ops};
pub use plimsoll_core::{DType, Device, DeviceKind, Error, ErrorKind, Result, Scalar};
pub use plimsoll_kernels::{CpuLaunch, Element, Meta, Operand, Truth, Workspace, parallel};
pub use random::{
    Draws, Generator, RngCapture, RngFork, RngReplay, RngState, fork_rng, get_rng_state,
    manual_seed, manual_seed_on, set_rng_state, with_generator,
};
pub use storage::Storage;
pub use tensor::{Tensor, WeakTensor};
