//! QR by Householder's reflections, and products with them. A reflection is LAPACK's: `H = I - tau
//! v v'`, with `v` below the diagonal of its column, 1 on it and 0 above.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
    apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::{
    qr_in_place, qr_in_place_scratch, recommended_block_size,
};
use faer::linalg::{temp_mat_scratch, temp_mat_uninit};
use faer::mat::AsMatMut;
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Conj, MatMut, MatRef, Par};
use plimsoll_core::Result;
use plimsoll_engine::{CpuLaunch, Meta};

use crate::lu::identity;
use crate::matrices::{
    Batch, Real, check, for_each, match_real, match_real_dtype, misfit, sizes, workspace_bytes,
};

fn cost(rows: usize, columns: usize) -> usize {
    2 * rows * columns * rows.min(columns)
}

/// Reflections at a time.
fn block<T: Real>(rows: usize, columns: usize) -> usize {
    recommended_block_size::<T>(rows, columns).max(1)
}

/// The stack of [`factor_one`], beside the blocks' factors.
fn factor_need<T: Real>(rows: usize, columns: usize) -> StackReq {
    let block = block::<T>(rows, columns);
    let factor = qr_in_place_scratch::<T>(rows, columns, block, Par::Seq, Default::default());
    StackReq::new::<T>(rows.min(columns)).and(factor)
}

/// The stack of [`apply_one`] to a matrix of `columns` columns.
fn apply_need<T: Real>(rows: usize, block: usize, columns: usize) -> StackReq {
    apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(rows, block, columns)
}

/// Factors a copy of `original`: R on and above the diagonal, the reflections below it, their
/// blocks' factors in `blocks`.
fn factor_one<T: Real>(
    mut matrix: MatMut<'_, T>,
    original: MatRef<'_, T>,
    mut blocks: MatMut<'_, T>,
    stack: &mut MemStack,
) {
    matrix.copy_from(original);
    let small = matrix.nrows().min(matrix.ncols());
    if small == 0 {
        return;
    }
    let info = qr_in_place(matrix.rb_mut(), blocks.rb_mut(), Par::Seq, stack, Default::default());
    if info.rank < small {
        // Of columns that depend on others faer makes a staircase; LAPACK goes on.
        matrix.copy_from(original);
        let (mut taus, _) = stack.make_with(small, |_| T::ZERO);
        factor_dependent(matrix.rb_mut(), &mut taus);
        block_factors(matrix.rb(), |i| taus[i], blocks);
    }
}

/// Column by column, whatever their rank.
fn factor_dependent<T: Real>(mut a: MatMut<'_, T>, taus: &mut [T]) {
    let (rows, columns) = (a.nrows(), a.ncols());
    for (k, tau) in taus.iter_mut().enumerate() {
        let head = a[(k, k)];
        let tail = (k + 1..rows).fold(0.0, |sum: f64, row| sum.hypot(a[(row, k)].to_f64()));
        *tau = T::ZERO;
        if tail == 0.0 {
            continue;
        }
        let size = head.to_f64().hypot(tail);
        let beta = T::from_f64(if head < T::ZERO { size } else { -size });
        *tau = (beta - head) / beta;
        let scale = T::ONE / (head - beta);
        for row in k + 1..rows {
            a[(row, k)] *= scale;
        }
        a[(k, k)] = beta;
        for column in k + 1..columns {
            let mut dot = a[(k, column)];
            for row in k + 1..rows {
                dot += a[(row, k)] * a[(row, column)];
            }
            let update = *tau * dot;
            a[(k, column)] -= update;
            for row in k + 1..rows {
                let update = update * a[(row, k)];
                a[(row, column)] -= update;
            }
        }
    }
}

/// The blocks' factors of given reflections: of each block the products of its vectors above the
/// diagonal, and `1 / tau` on it.
fn block_factors<T: Real>(
    basis: MatRef<'_, T>,
    tau: impl Fn(usize) -> T,
    mut blocks: MatMut<'_, T>,
) {
    let (block, count, rows) = (blocks.nrows(), blocks.ncols(), basis.nrows());
    blocks.fill(T::ZERO);
    for j in 0..count {
        let first = j / block * block;
        for i in first..j {
            let mut dot = if j < rows { basis[(j, i)] } else { T::ZERO };
            for row in j + 1..rows {
                dot += basis[(row, i)] * basis[(row, j)];
            }
            blocks[(i - first, j)] = dot;
        }
        // Infinity where there is no reflection, which its place in the solution makes 0.
        blocks[(j - first, j)] = T::ONE / tau(j);
    }
}

/// `matrix` multiplied from the left by the product of the reflections, or by its transpose.
fn apply_one<T: Real>(
    basis: MatRef<'_, T>,
    blocks: MatRef<'_, T>,
    mut matrix: MatMut<'_, T>,
    transposed: bool,
    stack: &mut MemStack,
) {
    if matrix.nrows() == 0 || matrix.ncols() == 0 || blocks.ncols() == 0 {
        return;
    }
    // The reflection of the last row alone is a factor, which faer leaves out.
    let last = matrix.nrows() - 1;
    let square = blocks.ncols() > last;
    let (blocks, factor) = match square {
        true => (blocks.subcols(0, last), T::ONE - T::ONE / blocks[(last % blocks.nrows(), last)]),
        false => (blocks, T::ONE),
    };
    let scale = |mut matrix: MatMut<'_, T>| {
        for column in 0..matrix.ncols() {
            matrix[(last, column)] *= factor;
        }
    };
    if square && !transposed {
        scale(matrix.rb_mut());
    }
    if blocks.ncols() > 0 {
        apply_blocks(basis, blocks, matrix.rb_mut(), transposed, stack);
    }
    if square && transposed {
        scale(matrix);
    }
}

fn apply_blocks<T: Real>(
    basis: MatRef<'_, T>,
    blocks: MatRef<'_, T>,
    matrix: MatMut<'_, T>,
    transposed: bool,
    stack: &mut MemStack,
) {
    let basis = basis.subcols(0, blocks.ncols());
    let apply = match transposed {
        true => apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj::<T>,
        false => apply_block_householder_sequence_on_the_left_in_place_with_conj::<T>,
    };
    apply(basis, blocks, Conj::No, matrix, Par::Seq, stack);
}

fn reflections_need<T: Real>(rows: usize, columns: usize) -> StackReq {
    let blocks = temp_mat_scratch::<T>(block::<T>(rows, columns), rows.min(columns));
    blocks.and(factor_need::<T>(rows, columns))
}

/// What [`reflections`] needs.
pub fn reflections_workspace_bytes(input: &Meta) -> usize {
    let (rows, columns, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => reflections_need::<T>(rows, columns));
    workspace_bytes(count, cost(rows, columns), need)
}

/// `[A]` -> `[a, tau]`: R on and above the diagonal of `a`, the reflections below it.
pub fn reflections(launch: &CpuLaunch<'_>) -> Result<()> {
    check(launch, 1, 2)?;
    match_real!(launch, T => reflections_as::<T>(launch))
}

fn reflections_as<T: Real>(launch: &CpuLaunch<'_>) -> Result<()> {
    let a = Batch::<T>::matrices(&launch.inputs[0]);
    let packed = Batch::<T>::matrices(&launch.outputs[0]);
    let taus = Batch::<T>::vectors(&launch.outputs[1]);
    let (rows, columns) = (a.rows(), a.columns());
    let (block, small) = (block::<T>(rows, columns), rows.min(columns));
    let need = reflections_need::<T>(rows, columns);
    for_each(launch, a.count(), cost(rows, columns), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (from, to) = unsafe { (a.read(index), packed.write(index)) };
        // SAFETY: written before it is read.
        let (mut blocks, stack) = unsafe { temp_mat_uninit::<T, _, _>(block, small, stack) };
        let mut blocks = blocks.as_mat_mut();
        factor_one(to, from, blocks.rb_mut(), stack);
        for i in 0..small {
            // SAFETY: as above.
            unsafe { taus.set(index, i, T::ONE / blocks[(i % block, i)]) };
        }
    })?;
    Ok(())
}

/// What [`decompose`] needs.
pub fn decompose_workspace_bytes(input: &Meta, complete: bool) -> usize {
    let (rows, columns, count) = sizes(input);
    let need = match_real_dtype!(input.dtype, T => decompose_need::<T>(rows, columns, complete));
    workspace_bytes(count, cost(rows, columns), need)
}

fn decompose_need<T: Real>(rows: usize, columns: usize, complete: bool) -> StackReq {
    let (block, small) = (block::<T>(rows, columns), rows.min(columns));
    let wide = if complete { rows } else { small };
    let work = factor_need::<T>(rows, columns).or(apply_need::<T>(rows, block, wide));
    temp_mat_scratch::<T>(rows, columns).and(temp_mat_scratch::<T>(block, small)).and(work)
}

/// `[A]` -> `[R]`, then `[Q]` if there is an output for it: a basis of the columns, or of the whole
/// space if `complete`.
pub fn decompose(launch: &CpuLaunch<'_>, complete: bool) -> Result<()> {
    match_real!(launch, T => decompose_as::<T>(launch, complete))
}

fn decompose_as<T: Real>(launch: &CpuLaunch<'_>, complete: bool) -> Result<()> {
    let (r, q) = match launch.outputs {
        [r] => (r, None),
        [r, q] => (r, Some(Batch::<T>::matrices(q))),
        _ => return Err(misfit(launch)),
    };
    let (a, r) = (Batch::<T>::matrices(&launch.inputs[0]), Batch::<T>::matrices(r));
    let (rows, columns) = (a.rows(), a.columns());
    let (block, small) = (block::<T>(rows, columns), rows.min(columns));
    let need = decompose_need::<T>(rows, columns, complete);
    for_each(launch, a.count(), cost(rows, columns), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (from, mut r) = unsafe { (a.read(index), r.write(index)) };
        // SAFETY: written before it is read.
        let (mut packed, stack) = unsafe { temp_mat_uninit::<T, _, _>(rows, columns, stack) };
        // SAFETY: the same.
        let (mut blocks, stack) = unsafe { temp_mat_uninit::<T, _, _>(block, small, stack) };
        let (mut packed, mut blocks) = (packed.as_mat_mut(), blocks.as_mat_mut());
        factor_one(packed.rb_mut(), from, blocks.rb_mut(), stack);
        r.fill(T::ZERO);
        for column in 0..columns {
            for row in 0..(column + 1).min(r.nrows()) {
                r[(row, column)] = if row < rows { packed[(row, column)] } else { T::ZERO };
            }
        }
        if let Some(q) = &q {
            // SAFETY: as above.
            let mut q = unsafe { q.write(index) };
            identity(q.rb_mut());
            apply_one(packed.rb(), blocks.rb(), q, false, stack);
        }
    })?;
    Ok(())
}

/// What [`multiply`] needs for reflections of `basis` and a result of `output`; `left` or not.
pub fn multiply_workspace_bytes(tau: &Meta, output: &Meta, left: bool) -> usize {
    let (rows, columns, count) = sizes(output);
    let reflections = tau.shape().last().copied().unwrap_or(0);
    let (rows, columns) = if left { (rows, columns) } else { (columns, rows) };
    let need = match_real_dtype!(output.dtype, T => multiply_need::<T>(rows, columns, reflections));
    workspace_bytes(count, cost(rows, columns), need)
}

fn multiply_need<T: Real>(rows: usize, columns: usize, reflections: usize) -> StackReq {
    let block = block::<T>(rows, reflections);
    temp_mat_scratch::<T>(rows, reflections)
        .and(temp_mat_scratch::<T>(block, reflections))
        .and(apply_need::<T>(rows, block, columns))
}

/// `[vectors, tau, C]` -> `[Q C]`, or `[C Q]` if not `left`, or with the transpose of Q, which is
/// the product of the reflections. Without C it is the identity.
pub fn multiply(launch: &CpuLaunch<'_>, left: bool, transposed: bool) -> Result<()> {
    match_real!(launch, T => multiply_as::<T>(launch, left, transposed))
}

fn multiply_as<T: Real>(launch: &CpuLaunch<'_>, left: bool, transposed: bool) -> Result<()> {
    let (basis, taus) = match launch.inputs {
        [basis, taus, ..] => (Batch::<T>::matrices(basis), Batch::<T>::vectors(taus)),
        _ => return Err(misfit(launch)),
    };
    let c = launch.inputs.get(2).map(Batch::<T>::matrices);
    let out = Batch::<T>::matrices(&launch.outputs[0]);
    let (rows, columns) =
        if left { (out.rows(), out.columns()) } else { (out.columns(), out.rows()) };
    let reflections = taus.rows();
    let block = block::<T>(rows, reflections);
    let need = multiply_need::<T>(rows, columns, reflections);
    for_each(launch, out.count(), cost(rows, columns), need, |index, stack| {
        // SAFETY: the matrices of `index` are this part's.
        let (basis, mut to) = unsafe { (basis.read(index), out.write(index)) };
        match &c {
            // SAFETY: as above.
            Some(c) => to.copy_from(unsafe { c.read(index) }),
            None => identity(to.rb_mut()),
        }
        // SAFETY: written before it is read.
        let (mut packed, stack) = unsafe { temp_mat_uninit::<T, _, _>(rows, reflections, stack) };
        // SAFETY: the same.
        let (mut blocks, stack) = unsafe { temp_mat_uninit::<T, _, _>(block, reflections, stack) };
        let (mut packed, mut blocks) = (packed.as_mat_mut(), blocks.as_mat_mut());
        packed.copy_from(basis.subcols(0, reflections));
        // SAFETY: an input, in range.
        block_factors(packed.rb(), |i| unsafe { taus.get(index, i) }, blocks.rb_mut());
        // From the right: the same of the transposes.
        let to = if left { to } else { to.transpose_mut() };
        apply_one(packed.rb(), blocks.rb(), to, transposed == left, stack);
    })?;
    Ok(())
}
