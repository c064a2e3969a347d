//! The way to NVIDIA GPUs. The driver is loaded when it is first asked for, so one binary serves
//! machines with and without a GPU; without one every entry says why ([`unavailable`]).
//!
//! The feature `driver`, on by default, is all that needs the bindings. Without it `absent.rs`
//! stands in for the files that call the driver: every GPU is unavailable, and dry runs by name
//! work still.
//!
//! [`Context`] is one GPU: its sources of memory, streams, copies, kernels, matrix products
//! and convolutions.
//! What runs on it, and with which tensors, is decided in the `tensor` crate. All calls of the
//! driver, and so all `unsafe`, are in this crate.

#[cfg(not(feature = "driver"))]
mod absent;
#[cfg(feature = "driver")]
mod algorithms;
#[cfg(feature = "driver")]
mod blas;
#[cfg(feature = "driver")]
mod blas_descriptors;
#[cfg(feature = "driver")]
mod cache;
#[cfg(feature = "driver")]
mod context;
mod convolution;
#[cfg(feature = "driver")]
mod dnn;
#[cfg(feature = "driver")]
mod dnn_descriptors;
#[cfg(feature = "driver")]
mod error;
#[cfg(feature = "driver")]
mod fault;
#[cfg(feature = "driver")]
mod fence;
#[cfg(feature = "driver")]
mod graph;
#[cfg(feature = "driver")]
mod kernel;
mod launch;
#[cfg(feature = "driver")]
mod library;
mod matmul;
#[cfg(feature = "driver")]
mod nvrtc;
#[cfg(feature = "driver")]
mod pages;
mod properties;
pub mod source_files;
#[cfg(feature = "driver")]
mod sources;
#[cfg(feature = "driver")]
mod stream;
#[cfg(feature = "driver")]
mod timing;
#[cfg(feature = "driver")]
mod turn;

#[cfg(not(feature = "driver"))]
pub use absent::{
    Context, DeviceSource, Graph, Kernel, TimedEvent, compile, count, cudnn_convolutions,
    cudnn_version, unavailable,
};
#[cfg(feature = "driver")]
pub use context::{Context, ForeignContext};
pub use convolution::{Convolution, ConvolutionMemory, Pass};
#[cfg(feature = "driver")]
pub use dnn::{cudnn_convolutions, cudnn_version};
#[cfg(feature = "driver")]
pub use graph::Graph;
#[cfg(feature = "driver")]
pub use kernel::Kernel;
pub use launch::{Argument, Fault, Grid, KernelName, KernelSource, Words};
#[cfg(feature = "driver")]
pub use library::{count, unavailable};
pub use matmul::{BlasType, Matmul, MatmulMemory};
#[cfg(feature = "driver")]
pub use nvrtc::compile;
pub use properties::Properties;
#[cfg(feature = "driver")]
pub use sources::DeviceSource;
#[cfg(feature = "driver")]
pub use timing::TimedEvent;
