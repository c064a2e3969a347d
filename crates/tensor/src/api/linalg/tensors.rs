//! Inverses of tensors and systems of them, as matrices of their dimensions taken together; and
//! functions of whole matrices.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::api::linalg::LinalgSvdOptions;
use crate::api::norm::LinalgMatrixNormOptions;
use crate::api::options::{DimList, options};
use crate::autograd::{BackwardContext, Context, Function};
use crate::ops::linalg::signed;

options! {
    /// Which dimensions of a tensor [`Tensor::linalg_tensorinv_with`] takes for rows.
    LinalgTensorinvOptions {
        /// So many of the first.
        ind: i64 = 2,
    }
}

options! {
    /// Which dimensions [`Tensor::linalg_tensorsolve_with`] moves to the end first.
    LinalgTensorsolveOptions {
        /// These.
        dims: DimList = DimList::default(),
    }
}

impl Tensor {
    /// The inverse of a tensor whose first two dimensions are the rows of a matrix, and the others
    /// its columns.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::eye(4, DType::F32)?.mul(2.0)?.reshape(&[2, 2, 4])?;
    /// let inverse = a.linalg_tensorinv()?;
    /// assert_eq!((inverse.shape(), inverse.to_vec::<f32>()?[0]), (&[4, 2, 2][..], 0.5));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_tensorinv(&self) -> Result<Tensor> {
        self.linalg_tensorinv_with(LinalgTensorinvOptions::new())
    }

    /// [`Tensor::linalg_tensorinv`] with another number of dimensions as rows.
    #[track_caller]
    pub fn linalg_tensorinv_with(&self, options: LinalgTensorinvOptions) -> Result<Tensor> {
        const OP: &str = "linalg_tensorinv";
        composed(OP, Site::caller(), || {
            if options.ind <= 0 {
                return Err(Error::shape(OP, "`ind` is the number of dimensions, 1 or more"));
            }
            let (start, end) = self.shape().split_at(self.rank().min(options.ind as usize));
            let (rows, columns): (usize, usize) = (start.iter().product(), end.iter().product());
            if rows != columns {
                return Err(Error::shape(
                    OP,
                    format!("{start:?} and {end:?} are not the sides of a square matrix"),
                ));
            }
            let matrix = self.reshape(&[columns as i64, columns as i64])?;
            let sizes: Vec<usize> = end.iter().chain(start).copied().collect();
            matrix.linalg_inv()?.reshape(&signed(&sizes))
        })
    }

    /// Solves a system of a tensor: the matrix whose rows are its first dimensions, those of `b`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::eye(4, DType::F32)?.reshape(&[2, 2, 4])?;
    /// let x = a.linalg_tensorsolve(&Tensor::ones(&[2, 2], DType::F32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_tensorsolve(&self, b: &Tensor) -> Result<Tensor> {
        self.linalg_tensorsolve_with(b, LinalgTensorsolveOptions::new())
    }

    /// [`Tensor::linalg_tensorsolve`] with dimensions moved to the end first.
    #[track_caller]
    pub fn linalg_tensorsolve_with(
        &self,
        b: &Tensor,
        options: LinalgTensorsolveOptions,
    ) -> Result<Tensor> {
        const OP: &str = "linalg_tensorsolve";
        composed(OP, Site::caller(), || {
            let dims = options.dims.as_slice();
            let a = if dims.is_empty() {
                self.clone()
            } else {
                let to: Vec<i64> = (0..dims.len() as i64).map(|i| i - dims.len() as i64).collect();
                self.movedim(dims, &to)?
            };
            let unknown = a.shape().get(b.rank()..).unwrap_or_default().to_vec();
            let count: usize = unknown.iter().product();
            if count != b.numel() || a.numel() != count * count {
                return Err(Error::shape(
                    OP,
                    format!("shapes {:?} and {:?} make no square system", a.shape(), b.shape()),
                ));
            }
            let matrix = a.reshape(&[count as i64, count as i64])?;
            matrix.linalg_solve(&b.reshape(&[-1])?)?.reshape(&signed(&unknown))
        })
    }

    /// The symmetric square root of each symmetric positive-definite matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[4.0f64, 0.0, 0.0, 9.0], &[2, 2], Device::cpu())?;
    /// let root = a.linalg_matrix_sqrth()?.to_vec::<f64>()?;
    /// assert!((root[0] - 2.0).abs() < 1e-12 && (root[3] - 3.0).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_matrix_sqrth(&self) -> Result<Tensor> {
        composed("linalg_matrix_sqrth", Site::caller(), || {
            let (values, vectors) = self.linalg_eigh()?;
            let scaled = vectors.mul(&values.sqrt()?.unsqueeze(-2)?)?;
            scaled.matmul(&vectors.transpose(-2, -1)?)
        })
    }

    /// The polar decomposition of each matrix: `A = U H`, with orthonormal columns and a symmetric
    /// matrix that is not negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f64, -2.0, 3.0, 0.0], &[2, 2], Device::cpu())?;
    /// let (u, h) = a.linalg_polar()?;
    /// assert!(u.matmul(&h)?.allclose(&a)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_polar(&self) -> Result<(Tensor, Tensor)> {
        const OP: &str = "linalg_polar";
        composed(OP, Site::caller(), || {
            if let [.., rows, columns] = *self.shape()
                && rows < columns
            {
                let why = format!("shape {:?} has more columns than rows", self.shape());
                return Err(Error::shape(OP, why));
            }
            let thin = LinalgSvdOptions::new().full_matrices(false);
            let (u, s, vh) = self.linalg_svd_with(thin)?;
            let v = vh.transpose(-2, -1)?;
            Ok((u.matmul(&vh)?, v.mul(&s.unsqueeze(-2)?)?.matmul(&vh)?))
        })
    }

    /// The exponential of each square matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f64, 1.0, 0.0, 0.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(a.matrix_exp()?.to_vec::<f64>()?, [1.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_exp(&self) -> Result<Tensor> {
        exponential("matrix_exp", self, Site::caller())
    }

    /// Another name of [`Tensor::matrix_exp`].
    #[track_caller]
    pub fn linalg_matrix_exp(&self) -> Result<Tensor> {
        exponential("linalg_matrix_exp", self, Site::caller())
    }
}

fn exponential(op: &'static str, x: &Tensor, site: Site) -> Result<Tensor> {
    match *x.shape() {
        [.., rows, columns] if rows == columns => {}
        _ => {
            let why = format!("square matrices are needed, not shape {:?}", x.shape());
            return Err(Error::shape(op, why));
        }
    }
    if !x.dtype().is_float() || x.dtype() == DType::F16 {
        let why = format!("{} has no room for the powers of a matrix; use float32", x.dtype());
        return Err(Error::dtype(op, why));
    }
    composed(op, site, || {
        let found = Exponential.apply(&[x])?;
        found.into_iter().next().ok_or_else(|| Error::shape(op, "no result"))
    })
}

/// With a derivative of its own, which is the exponential of a matrix of twice the size.
struct Exponential;

impl Function for Exponential {
    fn name(&self) -> &'static str {
        "matrix_exp"
    }

    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        context.save_for_backward(&[inputs[0]]);
        Ok(vec![taylor(inputs[0])?])
    }

    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let saved = context.saved_tensors();
        let Some(Some(grad)) = grads.first() else { return Ok(vec![None]) };
        let at = saved[0].transpose(-2, -1)?;
        let size = at.shape()[at.rank() - 1] as i64;
        let upper = Tensor::cat(&[&at, grad], -1)?;
        let lower = Tensor::cat(&[&at.zeros_like()?, &at], -1)?;
        let whole = Tensor::cat(&[&upper, &lower], -2)?.matrix_exp()?;
        Ok(vec![Some(whole.narrow(-2, 0, size)?.narrow(-1, size, size)?)])
    }
}

/// Taylor's series up to the power 16, of matrices scaled down until it is exact, and squared as
/// often.
fn taylor(x: &Tensor) -> Result<Tensor> {
    if x.numel() == 0 {
        return x.clone_tensor();
    }
    // The largest sum of a column, at which the rest of the series is below the precision.
    let most = if x.dtype() == DType::F64 { 0.75 } else { 2.0 };
    let wide = if x.dtype() == DType::BF16 { x.float()? } else { x.clone() };
    let norm = wide.linalg_matrix_norm_of(1.0, LinalgMatrixNormOptions::new())?.amax()?;
    let norm = norm.to(DType::F64)?.item::<f64>()?;
    let times =
        if norm > most && norm.is_finite() { (norm / most).log2().ceil() as i32 } else { 0 };
    let x = x.mul(0.5f64.powi(times))?;
    let size = x.shape()[x.rank() - 1] as i64;
    let one = Tensor::eye(size, (x.dtype(), x.device()))?;
    let two = x.matmul(&x)?;
    let powers = [one, x.clone(), two.clone(), two.matmul(&x)?];
    let fourth = two.matmul(&two)?;
    // Four terms at a time, from the last.
    let factorial = |n: usize| (1..=n).map(|i| i as f64).product::<f64>();
    let mut sum = fourth.mul(1.0 / factorial(16))?;
    for block in (0..4).rev() {
        if block < 3 {
            sum = sum.matmul(&fourth)?;
        }
        for (place, power) in powers.iter().enumerate() {
            sum = sum.add(&power.mul(1.0 / factorial(4 * block + place))?)?;
        }
    }
    for _ in 0..times {
        sum = sum.matmul(&sum)?;
    }
    Ok(sum)
}
