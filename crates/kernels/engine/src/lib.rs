//! What CPU kernels are made of. A kernel is a function of a [`CpuLaunch`]: operands (pointer,
//! layout, dtype) that dispatch has checked, and workspace. Kernels never allocate, never look at a
//! tensor and never start another operation.
//!
//! Start with [`iterate`] (how any layouts become loops) and [`map`] (typed loops). [`simd`] picks
//! the instruction set, [`parallel`] the threads. The kernels are crates of their own, one a
//! family, so that a change compiles one of them anew.

pub mod along_dim;
pub mod chunked;
mod element;
pub mod generate;
pub mod iterate;
pub mod map;
pub mod math32;
pub mod math64;
pub mod nontemporal;
pub mod number;
mod operand;
pub mod pack;
pub mod parallel;
pub mod real;
pub mod shared;
pub mod simd;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transpose_blocks;

use plimsoll_core::{DType, Error, Result};

/// What the macros of this crate name where they are used.
#[doc(hidden)]
pub mod of_macros {
    pub use half::{bf16, f16};
    pub use plimsoll_core::DType;
}

pub use element::{Element, Truth};
pub use operand::{CpuLaunch, Meta, Operand, Second, Workspace};

/// The dtype of the first input, which the kernels of most families are chosen by.
#[inline]
pub fn input_dtype(launch: &CpuLaunch<'_>) -> Result<DType> {
    match launch.inputs.first() {
        Some(input) => Ok(input.dtype()),
        None => Err(Error::invalid_argument("the kernel was launched without inputs")
            .in_operation(launch.operation)),
    }
}

/// A kernel was handed a dtype that it does not compute in.
#[cold]
pub fn wrong_dtype(operation: &'static str, dtype: DType) -> Error {
    Error::dtype(operation, format!("there is no CPU kernel for {dtype} operands here"))
}
