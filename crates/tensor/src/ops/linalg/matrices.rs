//! What factorizations of matrices have in common: batches of matrices of float32 and float64,
//! results in column-major order, and that they run on the CPU.

use plimsoll_core::{DType, Dims, Error, Layout, Result};
use smallvec::SmallVec;

use crate::Tensor;
use crate::operation::{DTypes, Home, OnCuda, OpInfo, Out};
use plimsoll_kernels::Meta;

/// A factorization with a kernel for the CPU alone: the libraries that have others on a GPU are not
/// loaded here. This is the one list of such operations: every row made by it.
pub(crate) const fn factorization(
    name: &'static str,
    signatures: &'static [&'static str],
) -> OpInfo {
    OpInfo {
        name,
        home: Home::Linalg,
        family: "linalg",
        signatures,
        differentiable: true,
        out: Out::Copied,
        cuda: OnCuda::Nothing,
        dtypes: DTypes::of(&[DType::F32, DType::F64]),
        ..OpInfo::BARE
    }
}

/// What is made of factorizations, and runs where they do.
pub(crate) const fn of_factorizations(
    name: &'static str,
    signatures: &'static [&'static str],
) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..factorization(name, signatures) }
}

/// A row of `torch` itself.
pub(crate) const fn at_top(info: OpInfo) -> OpInfo {
    OpInfo { home: Home::Torch, ..info }
}

/// Without a derivative.
pub(crate) const fn flat(info: OpInfo) -> OpInfo {
    OpInfo { differentiable: false, ..info }
}

/// Sizes before the last two, rows and columns of a batch of matrices of floats.
pub(crate) fn matrices<'a>(
    op: &'static str,
    meta: &'a Meta,
) -> Result<(&'a [usize], usize, usize)> {
    let [lead @ .., rows, columns] = meta.shape() else {
        return Err(Error::shape(
            op,
            format!("matrices are needed, at least two dimensions, not shape {:?}", meta.shape()),
        ));
    };
    check_float(op, meta.dtype)?;
    Ok((lead, *rows, *columns))
}

/// The same of square matrices.
pub(crate) fn square<'a>(op: &'static str, meta: &'a Meta) -> Result<(&'a [usize], usize)> {
    let (lead, rows, columns) = matrices(op, meta)?;
    if rows != columns {
        return Err(Error::shape(
            op,
            format!("the matrices must be square, and shape {:?} is not", meta.shape()),
        ));
    }
    Ok((lead, rows))
}

/// Refuses all but float32 and float64, as PyTorch does.
pub(crate) fn check_float(op: &'static str, dtype: DType) -> Result<()> {
    match dtype {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(Error::dtype(
            op,
            format!("matrices of {other} are not factored; convert them to float32 or float64"),
        )),
    }
}

/// Two operands of one dtype.
pub(crate) fn check_same(op: &'static str, a: &Meta, b: &Meta) -> Result<()> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    let why = format!("the operands are {} and {}; convert one with `to`", a.dtype, b.dtype);
    Err(Error::dtype(op, why))
}

/// `lead` and then `inner` sizes.
pub(crate) fn shape_of(lead: &[usize], inner: &[usize]) -> Dims {
    lead.iter().chain(inner).copied().collect()
}

/// A batch of matrices with the elements of a column side by side.
pub(crate) fn column_major(
    lead: &[usize],
    rows: usize,
    columns: usize,
    dtype: DType,
) -> Result<Meta> {
    let turned = Layout::contiguous(&shape_of(lead, &[columns, rows]))?;
    let mut strides: SmallVec<[usize; 6]> = turned.strides().into();
    let rank = strides.len();
    strides.swap(rank - 2, rank - 1);
    let shape = shape_of(lead, &[rows, columns]);
    Ok(Meta { layout: Layout::strided(&shape, &strides, 0)?, dtype })
}

/// A contiguous batch of vectors or numbers.
pub(crate) fn plain(lead: &[usize], inner: &[usize], dtype: DType) -> Result<Meta> {
    Meta::contiguous(&shape_of(lead, inner), dtype)
}

/// Each matrix transposed.
pub(crate) fn turned(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

/// Each vector as a diagonal matrix.
pub(crate) fn diagonal_matrix(x: &Tensor) -> Result<Tensor> {
    x.diag_embed(0, -2, -1)
}
