//! CPU kernels. [`simd`] picks the instruction set, [`crate::parallel`] the threads.

pub mod gemm;
pub mod simd;
