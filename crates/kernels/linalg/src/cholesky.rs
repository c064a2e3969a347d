//! Cholesky's factors of positive-definite matrices, of which one triangle is read.

use faer::Par;
use faer::dyn_stack::StackReq;
use faer::linalg::cholesky::llt::factor::{
    LltError, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::reborrow::ReborrowMut;
use plimsoll_core::{Error, Result};
use plimsoll_engine::{CpuLaunch, Meta};

use crate::matrices::{
    Batch, Real, check, element, first_failure, for_each, match_real, match_real_dtype, sizes,
    workspace_bytes,
};

fn need<T: Real>(size: usize) -> StackReq {
    cholesky_in_place_scratch::<T>(size, Par::Seq, Default::default())
}

fn cost(size: usize) -> usize {
    size * size * size / 3
}

/// What [`factor`] needs.
pub fn factor_workspace_bytes(input: &Meta) -> usize {
    let (size, _, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => need::<T>(size));
    workspace_bytes(count, cost(size), need)
}

/// `[A]` -> `[L, info]`: the lower factor, or the upper one if `upper`; and 0, or the order of the
/// leading minor that is not positive-definite, at which it fails if `strict`.
pub fn factor(launch: &CpuLaunch<'_>, upper: bool, strict: bool) -> Result<()> {
    check(launch, 1, 2)?;
    match_real!(launch, T => factor_as::<T>(launch, upper))?;
    let info = &launch.outputs[1];
    match first_failure(info) {
        Some((index, order)) if strict => Err(Error::linalg(
            launch.operation,
            format!(
                "{}the matrix is not positive-definite: its leading minor of order {order} is not",
                element(info, index)
            ),
        )),
        _ => Ok(()),
    }
}

fn factor_as<T: Real>(launch: &CpuLaunch<'_>, upper: bool) -> Result<()> {
    let a = Batch::<T>::matrices(&launch.inputs[0]);
    let l = Batch::<T>::matrices(&launch.outputs[0]);
    let infos = Batch::<i32>::numbers(&launch.outputs[1]);
    let size = a.rows();
    for_each(launch, a.count(), cost(size), need::<T>(size), |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (from, to) = unsafe { (a.read(index), l.write(index)) };
        // The upper factor is the lower one, transposed, and of the other triangle.
        let (from, mut to) =
            if upper { (from.transpose(), to.transpose_mut()) } else { (from, to) };
        to.copy_from_triangular_lower(from);
        let none = LltRegularization::<T>::default();
        let done = cholesky_in_place(to.rb_mut(), none, Par::Seq, stack, Default::default());
        let info = match done {
            Ok(_) => 0,
            Err(LltError::NonPositivePivot { index }) => index as i32 + 1,
        };
        // faer works in the other triangle as well.
        for column in 1..size {
            to.rb_mut().col_mut(column).subrows_mut(0, column).fill(T::ZERO);
        }
        // SAFETY: as the matrices.
        unsafe { infos.set(index, 0, info) };
    })?;
    Ok(())
}
