//! Eigenvalues and eigenvectors of symmetric matrices, of which one triangle is read.

use faer::Par;
use faer::diag::DiagMut;
use faer::dyn_stack::StackReq;
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use plimsoll_core::{Error, Result};
use plimsoll_engine::{CpuLaunch, Meta};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::matrices::{
    Batch, Real, for_each, match_real, match_real_dtype, misfit, sizes, workspace_bytes,
};

fn need<T: Real>(size: usize, vectors: bool) -> StackReq {
    if size == 0 {
        return StackReq::empty();
    }
    let vectors = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let values = StackReq::new::<T>(size);
    values.and(self_adjoint_evd_scratch::<T>(size, vectors, Par::Seq, Default::default()))
}

fn cost(size: usize) -> usize {
    4 * size * size * size
}

/// What [`symmetric`] needs.
pub fn symmetric_workspace_bytes(input: &Meta, vectors: bool) -> usize {
    let (size, _, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => need::<T>(size, vectors));
    workspace_bytes(count, cost(size), need)
}

/// `[A]` -> `[eigenvalues]` in rising order, then `[eigenvectors]` as columns if there is an output
/// for them. Reads the lower triangle, or the upper one if `upper`.
pub fn symmetric(launch: &CpuLaunch<'_>, upper: bool) -> Result<()> {
    match_real!(launch, T => symmetric_as::<T>(launch, upper))
}

fn symmetric_as<T: Real>(launch: &CpuLaunch<'_>, upper: bool) -> Result<()> {
    let (values, vectors) = match launch.outputs {
        [values] => (values, None),
        [values, vectors] => (values, Some(Batch::<T>::matrices(vectors))),
        _ => return Err(misfit(launch)),
    };
    let (a, values) = (Batch::<T>::matrices(&launch.inputs[0]), Batch::<T>::vectors(values));
    let (size, failed) = (a.rows(), AtomicUsize::new(usize::MAX));
    let need = need::<T>(size, vectors.is_some());
    for_each(launch, a.count(), cost(size), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let from = unsafe { a.read(index) };
        let from = if upper { from.transpose() } else { from };
        // SAFETY: as above.
        let to = vectors.as_ref().map(|vectors| unsafe { vectors.write(index) });
        let (mut found, stack) = stack.make_with(size, |_| T::ZERO);
        let diagonal = DiagMut::from_slice_mut(&mut found);
        // faer goes on with what is not finite.
        let finite = (0..size)
            .all(|column| (column..size).all(|row| from[(row, column)].to_f64().is_finite()));
        let done = self_adjoint_evd(from, diagonal, to, Par::Seq, stack, Default::default());
        if !finite || done.is_err() {
            failed.fetch_min(index, Ordering::Relaxed);
        }
        for (row, value) in found.iter().enumerate() {
            // SAFETY: as above.
            unsafe { values.set(index, row, *value) };
        }
    })?;
    converged(launch, failed)
}

/// An error if matrix `failed` of the batch did.
pub(crate) fn converged(launch: &CpuLaunch<'_>, failed: AtomicUsize) -> Result<()> {
    match failed.into_inner() {
        usize::MAX => Ok(()),
        index => Err(Error::linalg(
            launch.operation,
            format!(
                "the algorithm did not converge on matrix {index} of the batch: it is badly conditioned, or not finite"
            ),
        )),
    }
}
