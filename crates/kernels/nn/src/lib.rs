//! Kernels of neural networks that are neither elementwise nor plain reductions: losses,
//! embeddings, group norms, attention, recurrent layers, distances and resampling.
//!
//! They stand on `plimsoll-engine`: start with its `iterate.rs` and `map.rs`.

pub mod attention;
pub mod cross_entropy;
pub mod ctc;
pub mod distance;
pub mod embedding;
pub mod embedding_bag;
pub mod grid;
pub mod group_norm;
pub mod interpolate;
pub mod linear_cross_entropy;
pub mod loss;
pub mod nll;
mod planes;
mod products;
pub mod recurrent;
mod rows;
