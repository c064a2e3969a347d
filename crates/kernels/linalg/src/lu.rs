//! LU with partial pivoting, and what is solved with it: systems, inverses, determinants.
//!
//! Pivots are LAPACK's: row `i` was exchanged with row `pivots[i] - 1`, in this order.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::temp_mat_scratch;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::mat::AsMatMut;
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef, Par};
use plimsoll_core::{Error, Result};
use plimsoll_engine::{CpuLaunch, Meta, Operand};

use crate::matrices::{
    Batch, Real, check, element, first_failure, for_each, match_real, match_real_dtype, misfit,
    sizes, workspace_bytes,
};

/// The stack of [`factor_one`].
fn factor_need<T: Real>(rows: usize, columns: usize) -> StackReq {
    let factor = lu_in_place_scratch::<u32, T>(rows, columns, Par::Seq, Default::default());
    StackReq::new::<u32>(rows).array(3).and(factor)
}

fn factor_cost(rows: usize, columns: usize) -> usize {
    rows * columns * rows.min(columns)
}

/// Factors `matrix`, a copy of `original`, in place; `pivot(i, row)` is told the exchanges.
/// Returns the place of the first pivot that is 0, counted from 1, or 0.
fn factor_one<T: Real>(
    mut matrix: MatMut<'_, T>,
    original: MatRef<'_, T>,
    mut pivot: impl FnMut(usize, i32),
    stack: &mut MemStack,
) -> i32 {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    let small = rows.min(columns);
    matrix.copy_from(original);
    if small == 0 {
        return 0;
    }
    let (mut order, stack) = stack.make_with(rows, |_| 0u32);
    let (mut place, stack) = stack.make_with(rows, |_| 0u32);
    let (mut at, stack) = stack.make_with(rows, |row| row as u32);
    lu_in_place(matrix.rb_mut(), &mut order, &mut place, Par::Seq, stack, Default::default());
    let usable = (0..small).all(|i| {
        let value = matrix[(i, i)];
        // Not 0, and not NaN either.
        value.magnitude() > T::ZERO
    });
    if !usable {
        matrix.copy_from(original);
        return factor_singular(matrix, pivot);
    }
    // From where rows ended up to the exchanges that brought them there.
    for (row, place) in place.iter_mut().enumerate() {
        *place = row as u32;
    }
    for i in 0..small {
        let found = place[order[i] as usize] as usize;
        pivot(i, found as i32 + 1);
        at.swap(i, found);
        place[at[i] as usize] = i as u32;
        place[at[found] as usize] = found as u32;
    }
    0
}

/// The same column by column, for matrices whose pivots may be 0: such a column is left as it is,
/// as LAPACK leaves it.
fn factor_singular<T: Real>(mut a: MatMut<'_, T>, mut pivot: impl FnMut(usize, i32)) -> i32 {
    let (rows, columns) = (a.nrows(), a.ncols());
    let mut info = 0;
    for k in 0..rows.min(columns) {
        let mut largest = k;
        for row in k + 1..rows {
            if a[(row, k)].magnitude() > a[(largest, k)].magnitude() {
                largest = row;
            }
        }
        pivot(k, largest as i32 + 1);
        let head = a[(largest, k)];
        if head == T::ZERO {
            info = if info == 0 { k as i32 + 1 } else { info };
            continue;
        }
        for column in 0..columns {
            let upper = a[(k, column)];
            a[(k, column)] = a[(largest, column)];
            a[(largest, column)] = upper;
        }
        for row in k + 1..rows {
            let factor = a[(row, k)] / head;
            a[(row, k)] = factor;
            for column in k + 1..columns {
                let update = factor * a[(k, column)];
                a[(row, column)] -= update;
            }
        }
    }
    info
}

/// Solves with the factors of a square matrix in place of `b`: `A X = B`, or of the transpose.
fn solve_one<T: Real>(
    factors: MatRef<'_, T>,
    pivot: impl Fn(usize) -> usize,
    mut b: MatMut<'_, T>,
    transposed: bool,
) {
    let size = factors.nrows();
    if !transposed {
        for row in 0..size {
            swap_rows(b.rb_mut(), row, pivot(row));
        }
        solve_unit_lower_triangular_in_place(factors, b.rb_mut(), Par::Seq);
        solve_upper_triangular_in_place(factors, b, Par::Seq);
        return;
    }
    solve_lower_triangular_in_place(factors.transpose(), b.rb_mut(), Par::Seq);
    solve_unit_upper_triangular_in_place(factors.transpose(), b.rb_mut(), Par::Seq);
    for row in (0..size).rev() {
        swap_rows(b.rb_mut(), row, pivot(row));
    }
}

fn swap_rows<T: Real>(mut b: MatMut<'_, T>, one: usize, other: usize) {
    if one == other {
        return;
    }
    for column in 0..b.ncols() {
        let kept = b[(one, column)];
        b[(one, column)] = b[(other, column)];
        b[(other, column)] = kept;
    }
}

/// What [`factor`] needs.
pub fn factor_workspace_bytes(input: &Meta) -> usize {
    let (rows, columns, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => factor_need::<T>(rows, columns));
    workspace_bytes(count, factor_cost(rows, columns), need)
}

/// `[A]` -> `[LU, pivots, info]`: both factors in one matrix, LAPACK's pivots and the place of the
/// first pivot that is 0. Fails at that, if `strict`.
pub fn factor(launch: &CpuLaunch<'_>, strict: bool) -> Result<()> {
    check(launch, 1, 3)?;
    match_real!(launch, T => factor_as::<T>(launch))?;
    match first_failure(&launch.outputs[2]) {
        Some((index, info)) if strict => Err(Error::linalg(
            launch.operation,
            format!(
                "{}the pivot {info} of the factor U is 0, and solving with it would divide by it; \
                 `linalg_lu_factor_ex` and `linalg_lu` give the factors",
                element(&launch.outputs[2], index)
            ),
        )),
        _ => Ok(()),
    }
}

fn factor_as<T: Real>(launch: &CpuLaunch<'_>) -> Result<()> {
    let a = Batch::<T>::matrices(&launch.inputs[0]);
    let lu = Batch::<T>::matrices(&launch.outputs[0]);
    let pivots = Batch::<i32>::vectors(&launch.outputs[1]);
    let infos = Batch::<i32>::numbers(&launch.outputs[2]);
    let (rows, columns) = (a.rows(), a.columns());
    let need = factor_need::<T>(rows, columns);
    for_each(launch, a.count(), factor_cost(rows, columns), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (to, from) = unsafe { (lu.write(index), a.read(index)) };
        // SAFETY: there are as many pivots as the factors have on their diagonal.
        let pivot = |i: usize, row: i32| unsafe { pivots.set(index, i, row) };
        let info = factor_one(to, from, pivot, stack);
        // SAFETY: as the matrices.
        unsafe { infos.set(index, 0, info) };
    })?;
    Ok(())
}

/// What [`determinant`] needs for matrices of `input`, with the factors among its results or not.
pub fn determinant_workspace_bytes(input: &Meta, keeps: bool) -> usize {
    let (rows, columns, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => determinant_need::<T>(rows, keeps));
    workspace_bytes(count, factor_cost(rows, columns), need)
}

fn own_need<T: Real>(size: usize) -> StackReq {
    temp_mat_scratch::<T>(size, size).and(StackReq::new::<i32>(size))
}

fn determinant_need<T: Real>(size: usize, keeps: bool) -> StackReq {
    let factor = factor_need::<T>(size, size);
    if keeps { factor } else { own_need::<T>(size).and(factor) }
}

/// `[A]` -> `[det]`, or `[sign, logarithm of the size]` if `logarithm`; then `[LU, pivots]` if
/// there are outputs for them.
pub fn determinant(launch: &CpuLaunch<'_>, logarithm: bool) -> Result<()> {
    match_real!(launch, T => determinant_as::<T>(launch, logarithm))
}

fn determinant_as<T: Real>(launch: &CpuLaunch<'_>, logarithm: bool) -> Result<()> {
    let (results, factors) = launch.outputs.split_at(if logarithm { 2 } else { 1 });
    let a = Batch::<T>::matrices(&launch.inputs[0]);
    let results: smallvec::SmallVec<[Batch<'_, T>; 2]> =
        results.iter().map(Batch::numbers).collect();
    let kept = match factors {
        [lu, pivots] => Some((Batch::<T>::matrices(lu), Batch::<i32>::vectors(pivots))),
        [] => None,
        _ => return Err(misfit(launch)),
    };
    let size = a.rows();
    let need = determinant_need::<T>(size, kept.is_some());
    for_each(launch, a.count(), factor_cost(size, size), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let from = unsafe { a.read(index) };
        let mut exchanges = 0usize;
        let mut count = |i: usize, row: i32| exchanges += usize::from(row as usize != i + 1);
        let (sign, value) = match &kept {
            Some((lu, pivots)) => {
                // SAFETY: as above.
                let mut to = unsafe { lu.write(index) };
                let pivot = |i: usize, row: i32| {
                    count(i, row);
                    // SAFETY: one pivot for each row.
                    unsafe { pivots.set(index, i, row) };
                };
                factor_one(to.rb_mut(), from, pivot, stack);
                diagonal_product(to.rb(), exchanges, logarithm)
            }
            None => {
                // SAFETY: written in full before it is read.
                let (mut to, stack) =
                    unsafe { faer::linalg::temp_mat_uninit::<T, _, _>(size, size, stack) };
                let mut to = to.as_mat_mut();
                factor_one(to.rb_mut(), from, count, stack);
                diagonal_product(to.rb(), exchanges, logarithm)
            }
        };
        // SAFETY: as above.
        unsafe {
            results[0].set(index, 0, sign);
            if let Some(logarithms) = results.get(1) {
                logarithms.set(index, 0, value);
            }
        }
    })?;
    Ok(())
}

/// The determinant, or its sign and the logarithm of its size.
fn diagonal_product<T: Real>(lu: MatRef<'_, T>, exchanges: usize, logarithm: bool) -> (T, T) {
    let mut sign = if exchanges.is_multiple_of(2) { T::ONE } else { -T::ONE };
    if !logarithm {
        for i in 0..lu.nrows() {
            sign *= lu[(i, i)];
        }
        return (sign, sign);
    }
    let mut sum = 0.0;
    for i in 0..lu.nrows() {
        let value = lu[(i, i)];
        sign = if value == T::ZERO {
            T::ZERO
        } else if value < T::ZERO {
            -sign
        } else {
            sign
        };
        sum += value.magnitude().to_f64().ln();
    }
    (sign, T::from_f64(sum))
}

/// What [`solve`] needs, with the factors among its results or not.
pub fn solve_workspace_bytes(a: &Meta, keeps: bool) -> usize {
    let (size, _, count) = sizes(a);
    let need = match_real_dtype!(a.dtype, T => solve_need::<T>(size, keeps));
    workspace_bytes(count, factor_cost(size, size), need)
}

fn solve_need<T: Real>(size: usize, keeps: bool) -> StackReq {
    let factor = factor_need::<T>(size, size);
    if keeps { factor } else { own_need::<T>(size).and(factor) }
}

/// `[A, B]` -> `[X, info]`, then `[LU, pivots]` if there are outputs for them: `A X = B`, or
/// `X A = B` if not `left`. Without B, X is the inverse. A singular matrix fails, if `strict`.
pub fn solve(launch: &CpuLaunch<'_>, left: bool, strict: bool) -> Result<()> {
    match_real!(launch, T => solve_as::<T>(launch, left))?;
    let info = &launch.outputs[1];
    match first_failure(info) {
        Some((index, pivot)) if strict => Err(Error::linalg(
            launch.operation,
            format!(
                "{}the matrix is singular: the pivot {pivot} of its factor U is 0",
                element(info, index)
            ),
        )),
        _ => Ok(()),
    }
}

fn solve_as<T: Real>(launch: &CpuLaunch<'_>, left: bool) -> Result<()> {
    let (x, info, factors) = match launch.outputs {
        [x, info, factors @ ..] => (x, info, factors),
        _ => return Err(misfit(launch)),
    };
    let a = Batch::<T>::matrices(&launch.inputs[0]);
    let b = launch.inputs.get(1).map(Batch::<T>::matrices);
    let (x, infos) = (Batch::<T>::matrices(x), Batch::<i32>::numbers(info));
    let kept = match factors {
        [lu, pivots] => Some((Batch::<T>::matrices(lu), Batch::<i32>::vectors(pivots))),
        [] => None,
        _ => return Err(misfit(launch)),
    };
    let size = a.rows();
    let need = solve_need::<T>(size, kept.is_some());
    for_each(launch, a.count(), factor_cost(size, size), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (from, mut to) = unsafe { (a.read(index), x.write(index)) };
        match &b {
            // SAFETY: as above.
            Some(b) => to.copy_from(unsafe { b.read(index) }),
            None => identity(to.rb_mut()),
        }
        let to = if left { to } else { to.transpose_mut() };
        let info = match &kept {
            Some((lu, pivots)) => {
                // SAFETY: as above.
                let mut lu = unsafe { lu.write(index) };
                // SAFETY: one pivot for each row.
                let write = |i: usize, row: i32| unsafe { pivots.set(index, i, row) };
                let info = factor_one(lu.rb_mut(), from, write, stack);
                // SAFETY: as above.
                let pivot = |i: usize| unsafe { pivots.get(index, i) as usize - 1 };
                solve_one(lu.rb(), pivot, to, !left);
                info
            }
            None => {
                // SAFETY: written in full before it is read.
                let (mut lu, stack) =
                    unsafe { faer::linalg::temp_mat_uninit::<T, _, _>(size, size, stack) };
                let mut lu = lu.as_mat_mut();
                let (mut pivots, stack) = stack.make_with(size, |_| 0i32);
                let info = factor_one(lu.rb_mut(), from, |i, row| pivots[i] = row, stack);
                solve_one(lu.rb(), |i| pivots[i] as usize - 1, to, !left);
                info
            }
        };
        // SAFETY: as above.
        unsafe { infos.set(index, 0, info) };
    })?;
    Ok(())
}

pub(crate) fn identity<T: Real>(mut matrix: MatMut<'_, T>) {
    matrix.fill(T::ZERO);
    for i in 0..matrix.nrows().min(matrix.ncols()) {
        matrix[(i, i)] = T::ONE;
    }
}

/// `[LU, pivots, B]` -> `[X]`: solves `A X = B`, or `X A = B` if not `left`, with the factors of A;
/// or with those of its transpose, if `transposed`.
pub fn solve_factored(launch: &CpuLaunch<'_>, left: bool, transposed: bool) -> Result<()> {
    check(launch, 3, 1)?;
    check_pivots(launch, &launch.inputs[1], sizes(launch.inputs[0].meta()).0)?;
    match_real!(launch, T => solve_factored_as::<T>(launch, left, transposed))
}

fn solve_factored_as<T: Real>(launch: &CpuLaunch<'_>, left: bool, transposed: bool) -> Result<()> {
    let (lu, b) =
        (Batch::<T>::matrices(&launch.inputs[0]), Batch::<T>::matrices(&launch.inputs[2]));
    let pivots = Batch::<i32>::vectors(&launch.inputs[1]);
    let x = Batch::<T>::matrices(&launch.outputs[0]);
    let cost = lu.rows() * b.rows() * b.columns();
    for_each(launch, x.count(), cost, StackReq::empty(), |index, _| {
        // SAFETY: the matrices of `index` are this part's.
        let (factors, from, mut to) = unsafe { (lu.read(index), b.read(index), x.write(index)) };
        to.copy_from(from);
        let to = if left { to } else { to.transpose_mut() };
        // SAFETY: one pivot for each row; all are in range, which was checked.
        let pivot = |i: usize| unsafe { pivots.get(index, i) as usize - 1 };
        solve_one(factors, pivot, to, transposed == left);
    })?;
    Ok(())
}

/// Refuses pivots that name no row: they come from the user.
fn check_pivots(launch: &CpuLaunch<'_>, pivots: &Operand<'_>, rows: usize) -> Result<()> {
    let batch = Batch::<i32>::vectors(pivots);
    for index in 0..batch.count() {
        for i in 0..batch.rows() {
            // SAFETY: in range, and an input.
            let pivot = unsafe { batch.get(index, i) };
            if pivot < 1 || pivot as usize > rows {
                return Err(Error::shape(
                    launch.operation,
                    format!("a pivot is {pivot}; they name rows from 1 to {rows}"),
                ));
            }
        }
    }
    Ok(())
}

/// `[pivots]` -> `[rows]`, int64: which row of the matrix each row of the factors is.
pub fn row_order(launch: &CpuLaunch<'_>) -> Result<()> {
    check(launch, 1, 1)?;
    let pivots = Batch::<i32>::vectors(&launch.inputs[0]);
    let order = Batch::<i64>::vectors(&launch.outputs[0]);
    check_pivots(launch, &launch.inputs[0], order.rows())?;
    for index in 0..order.count() {
        // SAFETY: pivots are in range, which was checked, and there are no more than rows.
        unsafe {
            for row in 0..order.rows() {
                order.set(index, row, row as i64);
            }
            for i in 0..pivots.rows() {
                let other = pivots.get(index, i) as usize - 1;
                let (one, two) = (order.get(index, i), order.get(index, other));
                order.set(index, i, two);
                order.set(index, other, one);
            }
        }
    }
    Ok(())
}
