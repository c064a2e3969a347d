//! Kernels that move or make elements: copies with conversion, fills, concatenation, whole
//! dimensions moved about, triangles, random numbers, and the way back from views.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod copy;
pub mod fill;
pub mod join;
pub mod random;
pub mod rearrange;
pub mod triangle;
pub mod unview;
