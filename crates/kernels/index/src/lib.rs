//! Kernels that find elements by position or order: gathers, scatters, advanced indexing, sorting.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod index;
pub mod search;
pub mod sort;
