//! Joining tensors.

use plimsoll_core::{DType, Error, Result, normalize_dim};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::channels_last::is_image_of_channels;
use crate::ops::join::{Cat, is_skipped};
use crate::prepare::{apply, apply_one};
use crate::promotion::{Other, result_type};

impl Tensor {
    /// Tensors one after another along `dim`; all other sizes must be equal. Mixed dtypes promote.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// assert_eq!(Tensor::cat(&[&x, &x], 0)?.to_vec::<i64>()?, [0, 1, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        apply_one(&operation(tensors, dim)?, tensors, Site::caller())
    }

    /// [`Tensor::cat`] into `out`.
    #[track_caller]
    pub fn cat_out(tensors: &[&Tensor], dim: i64, out: &Tensor) -> Result<()> {
        if tensors.iter().any(|tensor| tensor.is(out)) {
            let why = "out is one of the tensors that are joined; write to another tensor";
            return Err(Error::shape("cat", why));
        }
        apply(&operation(tensors, dim)?, tensors, Dest::Out(&[out]), Site::caller()).map(drop)
    }

    /// Tensors of one shape side by side along a new dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// let y = Tensor::stack(&[&x, &x], 1)?;
    /// assert_eq!((y.shape(), y.to_vec::<i64>()?), (&[2, 2][..], vec![0, 0, 1, 1]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        let _named = enter_operation("stack");
        let site = Site::caller();
        if let Some(rank) = images_rank(tensors) {
            // Joined, which keeps channels last, and seen with the new dimension.
            let dim = normalize_dim("stack", dim, rank + 1)?;
            if dim < rank {
                let mut sizes: SmallVec<[i64; 6]> =
                    tensors[0].shape().iter().map(|&size| size as i64).collect();
                sizes.insert(dim, tensors.len() as i64);
                let joined = apply_one(&operation(tensors, dim as i64)?, tensors, site)?;
                return with_site(site, || joined.view(&sizes));
            }
        }
        let (wide, dim) = with_site(site, || widened(tensors, dim))?;
        let wide: SmallVec<[&Tensor; 4]> = wide.iter().collect();
        apply_one(&operation(&wide, dim)?, &wide, site)
    }

    /// [`Tensor::stack`] into `out`.
    #[track_caller]
    pub fn stack_out(tensors: &[&Tensor], dim: i64, out: &Tensor) -> Result<()> {
        let _named = enter_operation("stack");
        let site = Site::caller();
        let (wide, dim) = with_site(site, || widened(tensors, dim))?;
        let wide: SmallVec<[&Tensor; 4]> = wide.iter().collect();
        apply(&operation(&wide, dim)?, &wide, Dest::Out(&[out]), site).map(drop)
    }
}

/// The rank of tensors of one shape that are all channels last.
fn images_rank(tensors: &[&Tensor]) -> Option<usize> {
    let first = tensors.first()?;
    let alike =
        |tensor: &&Tensor| is_image_of_channels(tensor.layout()) && tensor.shape() == first.shape();
    tensors.iter().all(alike).then_some(first.rank())
}

/// Tensors of one shape with a dimension of size 1 more, and which dimension that is.
fn widened(tensors: &[&Tensor], dim: i64) -> Result<(SmallVec<[Tensor; 4]>, i64)> {
    const OP: &str = "stack";
    let Some(first) = tensors.first() else { return Err(nothing(OP)) };
    if let Some(other) = tensors.iter().find(|tensor| tensor.shape() != first.shape()) {
        return Err(Error::shape(
            OP,
            format!(
                "all tensors must have one shape, and these have {:?} and {:?}; `cat` joins different sizes",
                first.shape(),
                other.shape()
            ),
        ));
    }
    let dim = normalize_dim(OP, dim, first.rank() + 1)? as i64;
    Ok((tensors.iter().map(|tensor| tensor.unsqueeze(dim)).collect::<Result<_>>()?, dim))
}

fn operation(tensors: &[&Tensor], dim: i64) -> Result<Cat> {
    const OP: &str = "cat";
    if tensors.is_empty() {
        return Err(nothing(OP));
    }
    if let Some(index) = tensors.iter().position(|tensor| tensor.rank() == 0) {
        return Err(Error::shape(
            OP,
            format!(
                "tensor {index} has no dimensions and cannot be joined; use `stack`, or `view` it as [1]"
            ),
        ));
    }
    let full = tensors.iter().find(|t| !is_skipped(t.shape()));
    // Nothing but empty lists: PyTorch does not look at the dimension.
    let (rank, dim) = full.map_or((1, 0), |tensor| (tensor.rank(), dim));
    let dtype = match tensors.iter().find(|t| t.dtype() != tensors[0].dtype()) {
        None => tensors[0].dtype(),
        Some(_) => common_dtype(tensors),
    };
    Ok(Cat { dim: normalize_dim(OP, dim, rank)?, dtype })
}

fn common_dtype(tensors: &[&Tensor]) -> DType {
    let operands: SmallVec<[Other<'_>; 8]> = tensors.iter().map(|&t| Other::Tensor(t)).collect();
    result_type(&operands)
}

fn nothing(op: &'static str) -> Error {
    Error::invalid_argument("the list of tensors is empty; give at least one").in_operation(op)
}
