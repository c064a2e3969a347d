//! Kernels that fold dimensions away or need the whole of a row: sums, extremes, scans, softmax and
//! normalization.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod batch_norm;
pub mod layer_norm;
pub mod logsumexp;
pub mod reduce;
pub mod scan;
pub mod softmax;
