//! Matrix products: `gemm/` is the blocked product of one matrix, `matmul.rs` what tensors bring to
//! it.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod gemm;
pub mod matmul;
