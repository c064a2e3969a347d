//! The oracle: every operation once more, written to be obviously right and nothing else. It
//! computes in `f64` (integers exactly, in `i64`), element by element, on plain row-major arrays,
//! and rounds once at the end. It shares no code with the runtime, its dtype rules included; where
//! the two disagree, one is wrong.
//!
//! Start with [`Array`]; then one file a family. The golden files keep the oracle itself honest.

mod array;
pub mod attention;
pub mod binary;
pub mod conv;
pub mod copy;
pub mod create;
pub mod ctc;
pub mod embedding;
pub mod factors;
pub mod functions;
pub mod grid;
pub mod index;
pub mod interpolate;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod nn;
pub mod optim;
pub mod pool;
pub mod random;
pub mod recurrent;
pub mod reduce;
mod rules;
pub mod statistics;
pub mod unary;
pub mod views;

pub use array::{Array, Number, indices};
pub use rules::{common_dtype, float_dtype, lattice, round_to};
