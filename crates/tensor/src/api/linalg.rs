//! Matrix products.

use plimsoll_core::Result;
use plimsoll_memory::Site;

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::linalg::MatMul;
use crate::prepare::{apply, apply_one};

impl Tensor {
    /// The matrix product. A vector counts as a row on the left and as a column on the right, and
    /// loses that dimension in the result; dimensions before the last two are a batch and
    /// broadcast. Both operands have one dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// let b = Tensor::ones(&[3, 2], DType::F32)?;
    /// assert_eq!(a.matmul(&b)?.to_vec::<f32>()?, [3.0, 3.0, 12.0, 12.0]);
    /// let v = Tensor::ones(&[3], DType::F32)?;
    /// assert_eq!(a.matmul(&v)?.to_vec::<f32>()?, [3.0, 12.0]);
    /// assert!(b.matmul(&b).unwrap_err().is_shape());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        apply_one(&MatMul, &[self, other], Site::caller())
    }

    /// [`Tensor::matmul`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let eye = Tensor::eye(2, DType::F32)?;
    /// let out = Tensor::empty(&[2, 2], DType::F32)?;
    /// eye.matmul_out(&eye, &out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn matmul_out(&self, other: &Tensor, out: &Tensor) -> Result<()> {
        apply(&MatMul, &[self, other], Dest::Out(&[out]), Site::caller()).map(drop)
    }
}
