//! Convolutions and pooling: `conv/` multiplies windows by weights, `pool/` takes the largest or
//! the mean of each window, `unfold.rs` copies windows out and back.
//!
//! They stand on `plimsoll-engine`, and convolutions on the tiles of `plimsoll-kernels-matmul`.
//! Everything is three-dimensional inside ([`volume::Volume`]); fewer dimensions are sizes of 1.

pub mod conv;
pub mod pool;
pub mod unfold;
pub mod volume;
