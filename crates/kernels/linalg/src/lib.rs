//! Factorizations of matrices and what is solved with them, on `faer`: LU, Cholesky, QR,
//! eigenvalues of symmetric matrices, singular values. `matrices.rs` is the way from operands to
//! faer's matrices, and from the launch's workspace to its stacks; the rest is a file a
//! factorization.
//!
//! float32 and float64. Operands may have any layout; results are made column-major by whoever
//! infers them, because that is what the algorithms work on. Batches are divided among the pool's
//! threads, and each matrix is one thread's. Where faer leaves LAPACK's answer (singular matrices),
//! a plain loop of our own gives it.

pub mod cholesky;
pub mod eigen;
pub mod lu;
mod matrices;
pub mod qr;
pub mod svd;
pub mod triangular;
