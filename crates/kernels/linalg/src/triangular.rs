//! Systems with triangular matrices.

use faer::Par;
use faer::dyn_stack::StackReq;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};
use plimsoll_core::Result;
use plimsoll_engine::CpuLaunch;

use crate::matrices::{Batch, Real, check, for_each, match_real};

/// Which triangle of a matrix is read, and on which side of the unknown it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// The upper one, else the lower one.
    pub upper: bool,
    /// `A X = B`, else `X A = B`.
    pub left: bool,
    /// The diagonal counts as ones and is not read.
    pub unit: bool,
}

/// `[A, B]` -> `[X]`.
pub fn solve(launch: &CpuLaunch<'_>, triangle: Triangle) -> Result<()> {
    check(launch, 2, 1)?;
    match_real!(launch, T => solve_as::<T>(launch, triangle))
}

fn solve_as<T: Real>(launch: &CpuLaunch<'_>, triangle: Triangle) -> Result<()> {
    let (a, b) = (Batch::<T>::matrices(&launch.inputs[0]), Batch::<T>::matrices(&launch.inputs[1]));
    let x = Batch::<T>::matrices(&launch.outputs[0]);
    let cost = a.rows() * b.rows() * b.columns();
    for_each(launch, x.count(), cost, StackReq::empty(), |index, _| {
        // SAFETY: the matrices of `index` are this part's.
        let (a, from, mut to) = unsafe { (a.read(index), b.read(index), x.write(index)) };
        to.copy_from(from);
        // From the right: the same of the transposes.
        let (a, to, upper) = match triangle.left {
            true => (a, to, triangle.upper),
            false => (a.transpose(), to.transpose_mut(), !triangle.upper),
        };
        match (upper, triangle.unit) {
            (true, true) => solve_unit_upper_triangular_in_place(a, to, Par::Seq),
            (true, false) => solve_upper_triangular_in_place(a, to, Par::Seq),
            (false, true) => solve_unit_lower_triangular_in_place(a, to, Par::Seq),
            (false, false) => solve_lower_triangular_in_place(a, to, Par::Seq),
        }
    })?;
    Ok(())
}
