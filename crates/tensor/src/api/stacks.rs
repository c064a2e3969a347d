//! Tensors joined in the ways that have a name: beside, below and behind each other, in blocks,
//! as grids and as combinations. All are `cat`, `stack` and views.

use std::str::FromStr;

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use crate::Tensor;
use crate::promotion::{Other, result_type};

/// Which of two dimensions the first tensor of [`Tensor::meshgrid`] runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The first: matrices.
    Ij,
    /// The second: pictures.
    Xy,
}

impl FromStr for Indexing {
    type Err = Error;

    fn from_str(word: &str) -> Result<Indexing> {
        match word {
            "ij" => Ok(Indexing::Ij),
            "xy" => Ok(Indexing::Xy),
            _ => Err(Error::shape("meshgrid", format!("indexing is 'ij' or 'xy', not {word:?}"))),
        }
    }
}

impl Tensor {
    /// [`Tensor::cat`] by another name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// assert_eq!(Tensor::concat(&[&x, &x], 0)?.shape(), [4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn concat(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        Tensor::cat(tensors, dim)
    }

    /// [`Tensor::cat`] by NumPy's name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// assert_eq!(Tensor::concatenate(&[&x, &x], 0)?.shape(), [4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn concatenate(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        Tensor::cat(tensors, dim)
    }

    /// Tensors side by side: along the second dimension, vectors along their only one.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 1], DType::F32)?;
    /// assert_eq!(Tensor::hstack(&[&x, &x])?.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _named = enter_operation("hstack");
        let wide = each("hstack", tensors, Tensor::atleast_1d, Site::caller())?;
        let dim = if wide[0].rank() == 1 { 0 } else { 1 };
        Tensor::cat(&wide.iter().collect::<SmallVec<[&Tensor; 4]>>(), dim)
    }

    /// Tensors below each other: along the first dimension, vectors as rows.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(Tensor::vstack(&[&x, &x])?.shape(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn vstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _named = enter_operation("vstack");
        let wide = each("vstack", tensors, Tensor::atleast_2d, Site::caller())?;
        Tensor::cat(&wide.iter().collect::<SmallVec<[&Tensor; 4]>>(), 0)
    }

    /// [`Tensor::vstack`] by another name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(Tensor::row_stack(&[&x, &x])?.shape(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn row_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        Tensor::vstack(tensors)
    }

    /// Tensors behind each other: along the third dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(Tensor::dstack(&[&x, &x])?.shape(), [1, 3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _named = enter_operation("dstack");
        let wide = each("dstack", tensors, Tensor::atleast_3d, Site::caller())?;
        Tensor::cat(&wide.iter().collect::<SmallVec<[&Tensor; 4]>>(), 2)
    }

    /// Vectors as columns of a matrix, matrices side by side.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(Tensor::column_stack(&[&x, &x])?.shape(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn column_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _named = enter_operation("column_stack");
        let column = |x: &Tensor| match x.rank() {
            0 | 1 => x.reshape(&[x.numel() as i64, 1]),
            _ => Ok(x.clone()),
        };
        let wide = each("column_stack", tensors, column, Site::caller())?;
        Tensor::cat(&wide.iter().collect::<SmallVec<[&Tensor; 4]>>(), 1)
    }

    /// The matrix with these matrices along its diagonal; vectors count as rows.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 2], DType::I64)?;
    /// assert_eq!(Tensor::block_diag(&[&x, &x])?.shape(), [2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn block_diag(tensors: &[&Tensor]) -> Result<Tensor> {
        const OP: &str = "block_diag";
        let _named = enter_operation(OP);
        if let Some(at) = tensors.iter().position(|tensor| tensor.rank() > 2) {
            return Err(Error::shape(
                OP,
                format!("tensor {at} has shape {:?}; blocks are matrices", tensors[at].shape()),
            ));
        }
        if tensors.is_empty() {
            return Tensor::empty(&[1, 0], DType::F32);
        }
        let blocks = each(OP, tensors, Tensor::atleast_2d, Site::caller())?;
        let operands: SmallVec<[Other<'_>; 4]> = blocks.iter().map(Other::Tensor).collect();
        let total = |dim: usize| blocks.iter().map(|block| block.shape()[dim] as i64).sum();
        let sizes: [i64; 2] = [total(0), total(1)];
        let result = Tensor::zeros(&sizes, (result_type(&operands), blocks[0].device()))?;
        let mut at = [0, 0];
        for block in &blocks {
            let [rows, columns] = [block.shape()[0] as i64, block.shape()[1] as i64];
            result.narrow(0, at[0], rows)?.narrow(1, at[1], columns)?.copy_(block)?;
            at = [at[0] + rows, at[1] + columns];
        }
        Ok(result)
    }

    /// Vectors spread over a grid: each tensor along a dimension of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, y) = (Tensor::zeros(&[2], DType::F32)?, Tensor::zeros(&[3], DType::F32)?);
    /// assert_eq!(Tensor::meshgrid(&[&x, &y], None)?[1].shape(), [2, 3]);
    /// assert_eq!(Tensor::meshgrid(&[&x, &y], Some(Indexing::Xy))?[1].shape(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn meshgrid(tensors: &[&Tensor], indexing: Option<Indexing>) -> Result<Vec<Tensor>> {
        const OP: &str = "meshgrid";
        let _named = enter_operation(OP);
        let Some(first) = tensors.first() else {
            return Err(Error::shape(OP, "no tensor is given; give one or more"));
        };
        for tensor in tensors {
            if tensor.rank() > 1
                || tensor.dtype() != first.dtype()
                || tensor.device() != first.device()
            {
                return Err(Error::shape(
                    OP,
                    format!(
                        "vectors of one dtype and device make a grid, not {} of shape {:?} on {} with {} on {}",
                        tensor.dtype(),
                        tensor.shape(),
                        tensor.device(),
                        first.dtype(),
                        first.device()
                    ),
                ));
            }
        }
        let swap = indexing == Some(Indexing::Xy) && tensors.len() >= 2;
        let mut order: SmallVec<[usize; 4]> = (0..tensors.len()).collect();
        if swap {
            order.swap(0, 1);
        }
        let sizes: SmallVec<[i64; 4]> =
            order.iter().map(|&which| tensors[which].numel() as i64).collect();
        with_site(Site::caller(), || {
            let one = |which: usize| -> Result<Tensor> {
                let mut shape: SmallVec<[i64; 4]> = smallvec::smallvec![1; tensors.len()];
                let dim = order.iter().position(|&at| at == which).unwrap_or(which);
                shape[dim] = tensors[which].numel() as i64;
                tensors[which].reshape(&shape)?.expand(&sizes)
            };
            (0..tensors.len()).map(one).collect()
        })
    }

    /// Every way to take one element of each vector, a row each.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, y) = (Tensor::arange(0, 2, 1, DType::I64)?, Tensor::arange(5, 7, 1, DType::I64)?);
    /// assert_eq!(Tensor::cartesian_prod(&[&x, &y])?.to_vec::<i64>()?, [0, 5, 0, 6, 1, 5, 1, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cartesian_prod(tensors: &[&Tensor]) -> Result<Tensor> {
        const OP: &str = "cartesian_prod";
        let _named = enter_operation(OP);
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.rank() != 1) {
            return Err(Error::shape(
                OP,
                format!("it is of vectors, and one has shape {:?}", tensor.shape()),
            ));
        }
        if let [only] = tensors {
            return Ok((*only).clone());
        }
        let site = Site::caller();
        let grids = Tensor::meshgrid(tensors, None)?;
        let flat: SmallVec<[Tensor; 4]> = with_site(site, || {
            grids.iter().map(|grid| grid.reshape(&[-1])).collect::<Result<_>>()
        })?;
        Tensor::stack(&flat.iter().collect::<SmallVec<[&Tensor; 4]>>(), 1)
    }

    /// Every way to take `r` elements of a vector, in its order, a row each; an element more than
    /// once only `with_replacement`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// assert_eq!(x.combinations(2, false)?.to_vec::<i64>()?, [0, 1, 0, 2, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn combinations(&self, r: i64, with_replacement: bool) -> Result<Tensor> {
        const OP: &str = "combinations";
        let _named = enter_operation(OP);
        if self.rank() != 1 || r < 0 {
            return Err(Error::shape(
                OP,
                format!(
                    "of {r} elements of shape {:?}: give a vector, and 0 or more",
                    self.shape()
                ),
            ));
        }
        if r == 0 {
            return Tensor::empty(&[0], (self.dtype(), self.device()));
        }
        let (size, count) = (self.numel(), r as usize);
        let mut rows: Vec<i64> = Vec::new();
        let mut chosen: Vec<usize> = Vec::new();
        choose(size, count, with_replacement, &mut chosen, &mut rows);
        let index = Tensor::from_slice(&rows, &[(rows.len() / count) as i64, r], self.device())?;
        self.index(&[Some(&index)])
    }
}

/// Appends every choice that starts with `chosen`; choices are as long as the user asked for, and
/// few, since all of them are rows of the result.
fn choose(size: usize, left: usize, again: bool, chosen: &mut Vec<usize>, rows: &mut Vec<i64>) {
    if left == 0 {
        rows.extend(chosen.iter().map(|&at| at as i64));
        return;
    }
    let from = chosen.last().map_or(0, |&last| last + usize::from(!again));
    for at in from..size {
        chosen.push(at);
        choose(size, left - 1, again, chosen, rows);
        chosen.pop();
    }
}

/// Every tensor as `widen` makes it; there must be one.
fn each(
    op: &'static str,
    tensors: &[&Tensor],
    widen: impl Fn(&Tensor) -> Result<Tensor>,
    site: Site,
) -> Result<SmallVec<[Tensor; 4]>> {
    if tensors.is_empty() {
        return Err(Error::shape(op, "no tensor is given; give one or more"));
    }
    with_site(site, || tensors.iter().map(|tensor| widen(tensor)).collect())
}
