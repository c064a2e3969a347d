//! Systems with triangular matrices, and Cholesky's factors of positive-definite ones.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::batches::together;
use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::autograd::{BackwardContext, Context, Function};
use crate::dispatch::{Dest, first};
use crate::ops::linalg::cholesky::{Cholesky, SolveTriangular};
use crate::ops::linalg::signed;
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::triangular::Triangle;

options! {
    /// Which of Cholesky's factors is made or given.
    CholeskyOptions {
        /// The upper one, else the lower.
        upper: bool = false,
        /// Whether a matrix that is not positive-definite is an error, for
        /// [`Tensor::linalg_cholesky_ex_with`].
        check_errors: bool = false,
    }
}

options! {
    /// What [`Tensor::linalg_solve_triangular_with`] solves.
    LinalgSolveTriangularOptions {
        /// `A X = B`, else `X A = B`.
        left: bool = true,
        /// The diagonal counts as ones and is not read.
        unitriangular: bool = false,
    }
}

options! {
    /// What [`Tensor::triangular_solve_with`] solves.
    TriangularSolveOptions {
        /// The upper triangle of A is read, else the lower.
        upper: bool = true,
        /// With the transpose of A.
        transpose: bool = false,
        /// The diagonal counts as ones and is not read.
        unitriangular: bool = false,
    }
}

fn cholesky(a: &Tensor, upper: bool, strict: bool, site: Site) -> Result<(Tensor, Tensor)> {
    let mut found = apply(&Cholesky { upper, strict }, &[a], Dest::New, site)?;
    let info = found.remove(1);
    Ok((first(found), info))
}

impl Tensor {
    /// Solves `A X = B` with the upper or the lower triangle of A.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[2.0f32, 9.0, 1.0, 4.0], &[2, 2], Device::cpu())?;
    /// let b = Tensor::from_slice(&[2.0f32, 9.0], &[2, 1], Device::cpu())?;
    /// assert_eq!(a.linalg_solve_triangular(&b, false)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_solve_triangular(&self, b: &Tensor, upper: bool) -> Result<Tensor> {
        self.linalg_solve_triangular_with(b, upper, LinalgSolveTriangularOptions::new())
    }

    /// [`Tensor::linalg_solve_triangular`] from the other side, or with ones on the diagonal.
    #[track_caller]
    pub fn linalg_solve_triangular_with(
        &self,
        b: &Tensor,
        upper: bool,
        options: LinalgSolveTriangularOptions,
    ) -> Result<Tensor> {
        let LinalgSolveTriangularOptions { left, unitriangular: unit } = options;
        composed("linalg_solve_triangular", Site::caller(), || {
            let [a, b] = together("linalg_solve_triangular", [self, b])?;
            b.triangular(&a, Triangle { upper, left, unit })
        })
    }

    /// The kernel behind [`Tensor::linalg_solve_triangular`]: this is the right side, of the same
    /// batch as `a`.
    #[track_caller]
    pub(crate) fn triangular(&self, a: &Tensor, triangle: Triangle) -> Result<Tensor> {
        apply_one(&SolveTriangular(triangle), &[a, self], Site::caller())
    }

    /// Solves `A X = self` with the upper triangle of A, and gives a copy of A as well.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[2.0f32, 1.0, 9.0, 4.0], &[2, 2], Device::cpu())?;
    /// let b = Tensor::from_slice(&[4.0f32, 8.0], &[2, 1], Device::cpu())?;
    /// let (x, _) = b.triangular_solve(&a)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn triangular_solve(&self, a: &Tensor) -> Result<(Tensor, Tensor)> {
        self.triangular_solve_with(a, TriangularSolveOptions::new())
    }

    /// [`Tensor::triangular_solve`] with the other triangle, the transpose, or ones on the
    /// diagonal.
    #[track_caller]
    pub fn triangular_solve_with(
        &self,
        a: &Tensor,
        options: TriangularSolveOptions,
    ) -> Result<(Tensor, Tensor)> {
        let TriangularSolveOptions { upper, transpose, unitriangular: unit } = options;
        composed("triangular_solve", Site::caller(), || {
            let [a, b] = together("triangular_solve", [a, self])?;
            let (turned, upper) =
                if transpose { (a.transpose(-2, -1)?, !upper) } else { (a.clone(), upper) };
            let x = b.triangular(&turned, Triangle { upper, left: true, unit })?;
            let copy = a.transpose(-2, -1)?.clone_with(plimsoll_core::MemoryFormat::Contiguous)?;
            Ok((x, copy.transpose(-2, -1)?))
        })
    }

    /// The lower factor of Cholesky of each symmetric positive-definite matrix: `A = L L'`.
    ///
    /// Only the lower triangle is read. A matrix that is not positive-definite is an error.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[4.0f32, 2.0, 2.0, 10.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(a.linalg_cholesky()?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 3.0]);
    /// assert!(Tensor::zeros(&[2, 2], DType::F32)?.linalg_cholesky().unwrap_err().is_linalg());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_cholesky(&self) -> Result<Tensor> {
        self.linalg_cholesky_with(CholeskyOptions::new())
    }

    /// [`Tensor::linalg_cholesky`], or the upper factor, from the upper triangle.
    #[track_caller]
    pub fn linalg_cholesky_with(&self, options: CholeskyOptions) -> Result<Tensor> {
        Ok(cholesky(self, options.upper, true, Site::caller())?.0)
    }

    /// [`Tensor::linalg_cholesky`], and for each matrix 0 or the order of the leading minor that is
    /// not positive-definite.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (_, info) = Tensor::ones(&[2, 2], DType::F32)?.linalg_cholesky_ex()?;
    /// assert_eq!(info.item::<i32>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_cholesky_ex(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_cholesky_ex_with(CholeskyOptions::new())
    }

    /// [`Tensor::linalg_cholesky_ex`], or the upper factor, or with an error.
    #[track_caller]
    pub fn linalg_cholesky_ex_with(&self, options: CholeskyOptions) -> Result<(Tensor, Tensor)> {
        cholesky(self, options.upper, options.check_errors, Site::caller())
    }

    /// Another name of [`Tensor::linalg_cholesky`].
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        self.linalg_cholesky()
    }

    /// Another name of [`Tensor::linalg_cholesky_with`].
    #[track_caller]
    pub fn cholesky_with(&self, options: CholeskyOptions) -> Result<Tensor> {
        self.linalg_cholesky_with(options)
    }

    /// Solves `A X = self` with Cholesky's lower factor of A.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let l = Tensor::from_slice(&[2.0f32, 0.0, 1.0, 3.0], &[2, 2], Device::cpu())?;
    /// let b = Tensor::from_slice(&[8.0f32, 22.0], &[2, 1], Device::cpu())?;
    /// assert_eq!(b.cholesky_solve(&l)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky_solve(&self, factor: &Tensor) -> Result<Tensor> {
        self.cholesky_solve_with(factor, CholeskyOptions::new())
    }

    /// [`Tensor::cholesky_solve`], or with the upper factor.
    #[track_caller]
    pub fn cholesky_solve_with(&self, factor: &Tensor, options: CholeskyOptions) -> Result<Tensor> {
        composed("cholesky_solve", Site::caller(), || {
            let [factor, b] = together("cholesky_solve", [factor, self])?;
            one(ByFactor { upper: options.upper }.apply(&[&factor, &b])?)
        })
    }

    /// The inverse of A from Cholesky's lower factor of it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let l = Tensor::from_slice(&[2.0f32, 0.0, 0.0, 1.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(l.cholesky_inverse()?.to_vec::<f32>()?, [0.25, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky_inverse(&self) -> Result<Tensor> {
        self.cholesky_inverse_with(CholeskyOptions::new())
    }

    /// [`Tensor::cholesky_inverse`], or from the upper factor.
    #[track_caller]
    pub fn cholesky_inverse_with(&self, options: CholeskyOptions) -> Result<Tensor> {
        composed("cholesky_inverse", Site::caller(), || {
            let [.., rows, columns] = *self.shape() else {
                let why = format!("matrices are needed, not shape {:?}", self.shape());
                return Err(Error::shape("cholesky_inverse", why));
            };
            if rows != columns {
                let why = format!("the matrices of shape {:?} must be square", self.shape());
                return Err(Error::shape("cholesky_inverse", why));
            }
            one(ByFactor { upper: options.upper }.apply(&[self])?)
        })
    }
}

/// Solves with a factor and its transpose.
fn solve_twice(factor: &Tensor, b: &Tensor, upper: bool) -> Result<Tensor> {
    let turned = factor.transpose(-2, -1)?;
    let (lower, above) = if upper { (&turned, factor) } else { (factor, &turned) };
    let half = b.triangular(lower, Triangle { upper: false, left: true, unit: false })?;
    half.triangular(above, Triangle { upper: true, left: true, unit: false })
}

/// The solution of a system with a factor, or the inverse where there is no right side. Its
/// derivative is PyTorch's, which takes the factor for what makes `L L'` and not for a triangle.
struct ByFactor {
    upper: bool,
}

impl Function for ByFactor {
    fn name(&self) -> &'static str {
        "cholesky_solve"
    }

    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let factor = inputs[0];
        let result = match inputs.get(1) {
            Some(b) => solve_twice(factor, b, self.upper)?,
            None => {
                let size = factor.shape().last().copied().unwrap_or(0) as i64;
                let unit = Tensor::eye(size, (factor.dtype(), factor.device()))?;
                solve_twice(factor, &unit.expand(&signed(factor.shape()))?, self.upper)?
            }
        };
        context.set_value(inputs.len());
        context.save_for_backward(&[factor, &result]);
        Ok(vec![result])
    }

    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let saved = context.saved_tensors();
        let (factor, result) = (&saved[0], &saved[1]);
        let inputs = context.value::<usize>().copied().unwrap_or(1);
        let Some(Some(grad)) = grads.first() else { return Ok(vec![None; inputs]) };
        let turn = |x: &Tensor| x.transpose(-2, -1);
        let (whole, for_b) = if inputs == 1 {
            (result.matmul(&grad.add(&turn(grad)?)?)?.matmul(result)?, None)
        } else {
            let for_b =
                grad.cholesky_solve_with(factor, CholeskyOptions::new().upper(self.upper))?;
            let half = for_b.matmul(&turn(result)?)?;
            (half.add(&turn(&half)?)?, Some(for_b))
        };
        let product = if self.upper { factor.matmul(&whole)? } else { whole.matmul(factor)? };
        let mut gradients = vec![Some(product.neg()?), for_b];
        gradients.truncate(inputs);
        Ok(gradients)
    }
}

/// The one result of a function.
fn one(mut found: Vec<Tensor>) -> Result<Tensor> {
    found.pop().ok_or_else(|| Error::shape("cholesky_solve", "no result"))
}
