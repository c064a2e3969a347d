//! Kernels that compute each element from the elements at its place: functions of one, two and
//! three tensors, comparisons, and optimizer steps.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod activation;
pub mod arithmetic;
pub mod binary;
pub mod bitwise;
pub mod call;
pub mod compare;
pub mod divide;
mod on;
pub mod optim;
pub mod pow;
pub mod rounding;
pub mod select;
pub mod special;
pub mod ternary;
pub mod unary;
