//! Singular values and vectors.

use std::sync::atomic::{AtomicUsize, Ordering};

use faer::Par;
use faer::diag::DiagMut;
use faer::dyn_stack::StackReq;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use plimsoll_core::Result;
use plimsoll_engine::{CpuLaunch, Meta};

use crate::eigen::converged;
use crate::matrices::{
    Batch, Real, for_each, match_real, match_real_dtype, misfit, sizes, workspace_bytes,
};

/// Which singular vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are values.
    Thin,
    /// A whole basis of each side.
    Full,
}

fn need<T: Real>(rows: usize, columns: usize, vectors: Vectors) -> StackReq {
    let vectors = match vectors {
        Vectors::None => ComputeSvdVectors::No,
        Vectors::Thin => ComputeSvdVectors::Thin,
        Vectors::Full => ComputeSvdVectors::Full,
    };
    let values = StackReq::new::<T>(rows.min(columns));
    values.and(svd_scratch::<T>(rows, columns, vectors, vectors, Par::Seq, Default::default()))
}

fn cost(rows: usize, columns: usize) -> usize {
    8 * rows * columns * rows.min(columns)
}

/// What [`decompose`] needs.
pub fn decompose_workspace_bytes(input: &Meta, vectors: Vectors) -> usize {
    let (rows, columns, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => need::<T>(rows, columns, vectors));
    workspace_bytes(count, cost(rows, columns), need)
}

/// `[A]` -> `[S]` in falling order, then `[U, Vh]` unless no vectors are wanted.
pub fn decompose(launch: &CpuLaunch<'_>, vectors: Vectors) -> Result<()> {
    match_real!(launch, T => decompose_as::<T>(launch, vectors))
}

fn decompose_as<T: Real>(launch: &CpuLaunch<'_>, vectors: Vectors) -> Result<()> {
    let (values, sides) = match launch.outputs {
        [values] => (values, None),
        [values, u, vh] => (values, Some((Batch::<T>::matrices(u), Batch::<T>::matrices(vh)))),
        _ => return Err(misfit(launch)),
    };
    let (a, values) = (Batch::<T>::matrices(&launch.inputs[0]), Batch::<T>::vectors(values));
    let (rows, columns, failed) = (a.rows(), a.columns(), AtomicUsize::new(usize::MAX));
    let need = need::<T>(rows, columns, vectors);
    for_each(launch, a.count(), cost(rows, columns), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let from = unsafe { a.read(index) };
        let (u, v) = match &sides {
            // SAFETY: as above.
            Some((u, vh)) => unsafe { (Some(u.write(index)), Some(vh.write(index))) },
            None => (None, None),
        };
        let v = v.map(|vh| vh.transpose_mut());
        let (mut found, stack) = stack.make_with(rows.min(columns), |_| T::ZERO);
        let diagonal = DiagMut::from_slice_mut(&mut found);
        if svd(from, diagonal, u, v, Par::Seq, stack, Default::default()).is_err() {
            failed.fetch_min(index, Ordering::Relaxed);
        }
        for (row, value) in found.iter().enumerate() {
            // SAFETY: as above.
            unsafe { values.set(index, row, *value) };
        }
    })?;
    converged(launch, failed)
}
