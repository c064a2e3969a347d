//! The way to NVIDIA GPUs. The driver is loaded when it is first asked for, so one binary serves
//! machines with and without a GPU; without one every entry says why ([`unavailable`]).
//!
//! [`Context`] is one GPU: its sources of memory, streams, copies, kernels and matrix products.
//! What runs on it, and with which tensors, is decided in the `tensor` crate. All calls of the
//! driver, and so all `unsafe`, are in this crate.

mod blas;
mod context;
mod error;
mod fence;
mod kernel;
mod library;
mod nvrtc;
mod properties;
pub mod source_files;
mod sources;
mod stream;
mod timing;

pub use blas::{BlasType, Matmul, MatmulMemory};
pub use context::{Context, ForeignContext};
pub use kernel::{Argument, Grid, Kernel, KernelSource};
pub use library::{count, unavailable};
pub use nvrtc::compile;
pub use properties::Properties;
pub use sources::DeviceSource;
pub use timing::TimedEvent;
