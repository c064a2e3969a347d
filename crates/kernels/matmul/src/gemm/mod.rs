//! Matrix products on the CPU: `C = alpha * A * B + beta * C`, for every float type, `i32`, `i64`
//! and `u8`, with any strides, once or in batches.
//!
//! Nothing here allocates. [`Plan::new`] looks at sizes, strides, dtype and the number of threads
//! and says how many workspace bytes the product needs, so a dry run knows them without running;
//! the caller brings them. In the order to read: [`GemmShape`] (geometry), [`Plan`] (which method),
//! `blocked` (the general one), `micro` (its inner loop), `pack`; `gemv` for a single row; `amx`
//! for `bf16` on the matrix unit. [`PackedRight`] is for products that share a factor.

mod amx;
mod amx_tile;
mod blocked;
mod blocking;
mod gemv;
mod geometry;
mod micro;
mod packed;
mod plan;
mod product;
mod vector;

#[cfg(test)]
mod tests;

pub use geometry::{BatchDim, GemmShape, Strides};
pub use micro::{Kernels, Micro, Tile, TileFn};
pub use packed::{PackedRight, Rows};
pub use plan::{Gemm, Plan};

/// The workspace that [`gemm`] needs for `shape`: a function of the shape, the thread count and the
/// instruction set in force, and of nothing else.
pub fn workspace_bytes(shape: &GemmShape) -> usize {
    Plan::new(shape).workspace_bytes()
}

/// Computes `C = alpha * A * B + beta * C`; where `beta` is 0, C is not read. A dtype without
/// products (`bool`) is refused by dispatch and does nothing here.
///
/// # Safety
/// - A and B are readable and C is writable at every position of the shape, and C overlaps neither
///   them nor itself;
/// - `workspace` is 64-byte aligned and holds [`workspace_bytes`] of the same shape, asked under
///   the same thread count and instruction set (or make a [`Plan`], which remembers them).
pub unsafe fn gemm(problem: &Gemm, workspace: *mut u8) {
    // SAFETY: the caller's contract is the same.
    unsafe { Plan::new(&problem.shape).run(problem, workspace) }
}
