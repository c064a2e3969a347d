//! Products of matrices and vectors. Those that are added to a tensor are in `add_product.rs`,
//! those over any dimensions in `contract.rs` and `einsum.rs`, powers in `powers.rs`.
//! Factorizations and what is solved with them are in the other files.

mod add_product;
mod batches;
mod cholesky;
mod contract;
mod einsum;
mod lu;
mod powers;
mod pseudoinverse;
mod qr;
mod solve;
mod spectral;
mod tensors;

pub use add_product::ProductOptions;
pub use cholesky::{CholeskyOptions, LinalgSolveTriangularOptions, TriangularSolveOptions};
pub use contract::{CrossOptions, LinalgCrossOptions, LinalgVecdotOptions};
pub use lu::{LinalgLuSolveOptions, LuOptions, LuUnpackOptions};
pub use pseudoinverse::{
    LinalgCondOptions, LinalgLstsqOptions, LinalgPinvOptions, PinvTensorOptions, PinverseOptions,
};
pub use qr::{LinalgQrOptions, OrmqrOptions, QrMode, QrOptions};
pub use solve::{LinalgInvExOptions, LinalgSolveOptions};
pub use spectral::{Driver, EighOptions, LinalgSvdOptions, SvdOptions, Uplo};
pub use tensors::{LinalgTensorinvOptions, LinalgTensorsolveOptions};

use plimsoll_core::Result;
use plimsoll_memory::Site;

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::linalg::MatMul;
use crate::prepare::{apply, apply_one};

/// The two forms of one product.
macro_rules! products {
    ($($(#[$doc:meta])* $name:ident, $into:ident => $product:expr;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                    apply_one(&$product, &[self, other], Site::caller())
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
                #[track_caller]
                pub fn $into(&self, other: &Tensor, out: &Tensor) -> Result<()> {
                    apply(&$product, &[self, other], Dest::Out(&[out]), Site::caller()).map(drop)
                }
            )*
        }
    };
}

products! {
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
    matmul, matmul_out => MatMul::Any;

    /// The product of two matrices.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(a.mm(&a)?.to_vec::<f32>()?, [2.0, 3.0, 6.0, 11.0]);
    /// # Ok::<(), Error>(())
    /// ```
    mm, mm_out => MatMul::Matrices;

    /// The products of the matrices of two batches of one size.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 1, 3], DType::F32)?;
    /// assert_eq!(a.bmm(&a.transpose(1, 2)?)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    bmm, bmm_out => MatMul::Batches;

    /// The product of a matrix and a vector.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 3], DType::F32)?;
    /// assert_eq!(a.mv(&Tensor::arange(0, 3, 1, DType::F32)?)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    mv, mv_out => MatMul::MatrixVector;

    /// The product of two vectors: the sum of the products of their elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::arange(0, 4, 1, DType::F32)?;
    /// assert_eq!(v.dot(&v)?.item::<f32>()?, 14.0);
    /// # Ok::<(), Error>(())
    /// ```
    dot, dot_out => MatMul::Vectors;
}
