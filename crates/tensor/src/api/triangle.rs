//! Triangles of matrices, and matrices made of diagonals.

use plimsoll_core::{Error, Result, normalize_dim};
use plimsoll_memory::{Site, enter_operation};

use super::reshape::sizes_of;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::triangle::{KeepTriangle, Triangle};
use crate::prepare::{apply, apply_one};

/// The three forms of a triangle.
macro_rules! triangles {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident, $out:ident => $side:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self, diagonal: i64) -> Result<Tensor> {
                    let op = KeepTriangle { side: Triangle::$side, diagonal };
                    apply_one(&op, &[self], Site::caller())
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
                #[track_caller]
                pub fn $in_place(&self, diagonal: i64) -> Result<&Tensor> {
                    let op = KeepTriangle { side: Triangle::$side, diagonal };
                    apply(&op, &[self], Dest::InPlace, Site::caller())?;
                    Ok(self)
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
                #[track_caller]
                pub fn $out(&self, diagonal: i64, out: &Tensor) -> Result<()> {
                    let op = KeepTriangle { side: Triangle::$side, diagonal };
                    apply(&op, &[self], Dest::Out(&[out]), Site::caller()).map(drop)
                }
            )*
        }
    };
}

triangles! {
    /// Matrices with zeros above a diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2, 2], DType::I64)?.tril(0)?.to_vec::<i64>()?, [1, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    tril, tril_, tril_out => Lower;
    /// Matrices with zeros below a diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2, 2], DType::I64)?.triu(0)?.to_vec::<i64>()?, [1, 1, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    triu, triu_, triu_out => Upper;
}

impl Tensor {
    /// The diagonal of a matrix, copied, or the matrix with a vector on its diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::I64)?;
    /// assert_eq!(x.diag(0)?.to_vec::<i64>()?, [1, 0, 0, 1]);
    /// assert_eq!(x.diag(0)?.diag(0)?.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diag(&self, diagonal: i64) -> Result<Tensor> {
        let _named = enter_operation("diag");
        match self.rank() {
            1 => self.diag_embed(diagonal, 0, 1),
            2 => self.diagonal_copy(diagonal, 0, 1),
            rank => Err(Error::shape(
                "diag",
                format!("it is of vectors and matrices, and this has {rank} dimensions"),
            )),
        }
    }

    /// Matrices, over dimensions `dim1` and `dim2` of the result, with the last dimension on a
    /// diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 2], DType::I64)?;
    /// assert_eq!(x.diag_embed(1, -2, -1)?.shape(), [3, 3, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diag_embed(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        const OP: &str = "diag_embed";
        let _named = enter_operation(OP);
        let rank = self.rank() + 1;
        let (row, column) = (normalize_dim(OP, dim1, rank)?, normalize_dim(OP, dim2, rank)?);
        if row == column {
            return Err(Error::shape(OP, format!("both dimensions of the diagonal are {dim1}")));
        }
        let Some((&length, rest)) = self.shape().split_last() else {
            return Err(Error::shape(OP, "a tensor without dimensions makes no diagonal"));
        };
        let side = offset
            .checked_abs()
            .and_then(|away| (length as i64).checked_add(away))
            .ok_or_else(|| Error::shape(OP, format!("no matrix is as large as offset {offset}")))?;
        let mut rest = rest.iter().map(|&size| size as i64);
        let sizes: Vec<i64> = (0..rank)
            .map(|dim| if dim == row || dim == column { side } else { rest.next().unwrap_or(1) })
            .collect();
        let zeros = Tensor::zeros(&sizes, (self.dtype(), self.device()))?;
        zeros.diagonal(offset, dim1, dim2)?.copy_(self)?;
        Ok(zeros)
    }

    /// The matrix with all elements on a diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2, 2], DType::I64)?.diagflat(0)?.shape(), [4, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diagflat(&self, offset: i64) -> Result<Tensor> {
        let _named = enter_operation("diagflat");
        let count: i64 = sizes_of(self).iter().product();
        self.reshape(&[count])?.diag_embed(offset, 0, 1)
    }
}
