//! CPU kernels: the loops that touch bytes, as functions on a [`CpuLaunch`].
//! Shapes and dtypes were checked by dispatch; kernels never allocate, and scratch is the launch's
//! workspace. [`simd`] picks the instruction set, [`crate::parallel`] the threads.
//!
//! Start with `iterate.rs` (how any layouts become loops) and `map.rs` (typed loops); the other
//! files are one family of operations each.

use plimsoll_core::{DType, Error, Result};

use crate::operand::CpuLaunch;

pub mod batch_norm;
pub mod binary;
mod chunked;
pub mod compare;
pub mod copy;
pub mod divide;
pub mod fill;
pub mod gemm;
mod generate;
pub mod index;
mod iterate;
pub mod join;
pub mod layer_norm;
mod lines;
mod map;
mod math32;
mod math64;
pub mod matmul;
mod number;
pub mod optim;
pub mod pow;
pub mod random;
mod real;
pub mod reduce;
pub mod select;
pub mod simd;
pub mod softmax;
pub mod sort;
mod stream;
#[cfg(test)]
mod testing;
mod turn;
pub mod unary;
pub mod unview;

/// The dtype of the first input, which the kernels of most families are chosen by.
#[inline]
fn input_dtype(launch: &CpuLaunch<'_>) -> Result<DType> {
    match launch.inputs.first() {
        Some(input) => Ok(input.dtype()),
        None => Err(Error::invalid_argument("the kernel was launched without inputs")
            .in_operation(launch.operation)),
    }
}

/// A kernel was handed a dtype that it does not compute in.
#[cold]
fn wrong_dtype(operation: &'static str, dtype: DType) -> Error {
    Error::dtype(operation, format!("there is no CPU kernel for {dtype} operands here"))
}
