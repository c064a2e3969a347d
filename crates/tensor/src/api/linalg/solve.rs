//! Systems of equations, inverses and determinants.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::batches::together;
use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::dispatch::{Dest, first};
use crate::ops::linalg::solve::{Determinant, Inverse, Solve};
use crate::prepare::apply;

options! {
    /// What [`Tensor::linalg_solve_with`] solves.
    LinalgSolveOptions {
        /// `A X = B`, else `X A = B`.
        left: bool = true,
        /// Whether a singular matrix is an error, for [`Tensor::linalg_solve_ex_with`].
        check_errors: bool = false,
    }
}

options! {
    /// What [`Tensor::linalg_inv_ex_with`] does with a singular matrix.
    LinalgInvExOptions {
        /// Whether it is an error.
        check_errors: bool = false,
    }
}

/// The solution of `A X = B` or `X A = B`, of matrices or vectors, and what was wrong.
fn solve(
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
    left: bool,
    strict: bool,
    site: Site,
) -> Result<(Tensor, Tensor)> {
    composed(name, site, || {
        let is_vector =
            b.rank() == 1 || (a.rank() == b.rank() + 1 && a.shape()[..b.rank()] == *b.shape());
        if is_vector && !left {
            return Err(Error::shape(name, "a vector stands on the right: leave `left` as it is"));
        }
        let column = if is_vector { b.unsqueeze(-1)? } else { b.clone() };
        let [matrix, column] = together(name, [a, &column])?;
        let mut found = apply(&Solve { left, strict }, &[&matrix, &column], Dest::New, site)?;
        let info = found.remove(1);
        let x = first(found);
        Ok((if is_vector { x.squeeze_with(-1)? } else { x }, info))
    })
}

impl Tensor {
    /// Solves `A X = B` for square matrices or batches of them; B may be a vector.
    ///
    /// A singular matrix is an error.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f32, 1.0, 1.0, 2.0], &[2, 2], Device::cpu())?;
    /// let b = Tensor::from_slice(&[9.0f32, 8.0], &[2], Device::cpu())?;
    /// let x = a.linalg_solve(&b)?.to_vec::<f32>()?;
    /// assert!((x[0] - 2.0).abs() < 1e-6 && (x[1] - 3.0).abs() < 1e-6);
    /// assert!(Tensor::ones(&[2, 2], DType::F32)?.linalg_solve(&b).unwrap_err().is_linalg());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_solve(&self, b: &Tensor) -> Result<Tensor> {
        self.linalg_solve_with(b, LinalgSolveOptions::new())
    }

    /// [`Tensor::linalg_solve`] from the other side.
    #[track_caller]
    pub fn linalg_solve_with(&self, b: &Tensor, options: LinalgSolveOptions) -> Result<Tensor> {
        let (x, _) = solve("linalg_solve", self, b, options.left, true, Site::caller())?;
        Ok(x)
    }

    /// [`Tensor::linalg_solve`], and for each matrix the place of the first pivot that is 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::eye(2, DType::F32)?;
    /// let (x, info) = a.linalg_solve_ex(&Tensor::ones(&[2], DType::F32)?)?;
    /// assert_eq!((x.to_vec::<f32>()?, info.item::<i32>()?), (vec![1.0, 1.0], 0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_solve_ex(&self, b: &Tensor) -> Result<(Tensor, Tensor)> {
        self.linalg_solve_ex_with(b, LinalgSolveOptions::new())
    }

    /// [`Tensor::linalg_solve_ex`] from the other side, or with singular matrices as errors.
    #[track_caller]
    pub fn linalg_solve_ex_with(
        &self,
        b: &Tensor,
        options: LinalgSolveOptions,
    ) -> Result<(Tensor, Tensor)> {
        let LinalgSolveOptions { left, check_errors } = options;
        solve("linalg_solve_ex", self, b, left, check_errors, Site::caller())
    }

    /// The kernel behind [`Tensor::linalg_solve`], for operands of one batch; a singular matrix
    /// gives what dividing by 0 gives.
    #[track_caller]
    pub(crate) fn solved(&self, b: &Tensor, left: bool) -> Result<Tensor> {
        apply(&Solve { left, strict: false }, &[self, b], Dest::New, Site::caller()).map(first)
    }

    /// The inverse of each matrix.
    ///
    /// A singular matrix is an error.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f32, 2.0, 4.0, 0.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(a.linalg_inv()?.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_inv(&self) -> Result<Tensor> {
        apply(&Inverse { strict: true }, &[self], Dest::New, Site::caller()).map(first)
    }

    /// Another name of [`Tensor::linalg_inv`].
    #[track_caller]
    pub fn inverse(&self) -> Result<Tensor> {
        self.linalg_inv()
    }

    /// [`Tensor::linalg_inv`], and for each matrix the place of the first pivot that is 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (_, info) = Tensor::zeros(&[2, 2], DType::F32)?.linalg_inv_ex()?;
    /// assert_eq!(info.item::<i32>()?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_inv_ex(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_inv_ex_with(LinalgInvExOptions::new())
    }

    /// [`Tensor::linalg_inv_ex`], with singular matrices as errors.
    #[track_caller]
    pub fn linalg_inv_ex_with(&self, options: LinalgInvExOptions) -> Result<(Tensor, Tensor)> {
        let op = Inverse { strict: options.check_errors };
        let mut found = apply(&op, &[self], Dest::New, Site::caller())?;
        let info = found.remove(1);
        Ok((first(found), info))
    }

    /// The determinant of each matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f32, 2.0, 4.0, 0.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(a.linalg_det()?.item::<f32>()?, -8.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_det(&self) -> Result<Tensor> {
        apply(&Determinant { logarithm: false }, &[self], Dest::New, Site::caller()).map(first)
    }

    /// Another name of [`Tensor::linalg_det`].
    #[track_caller]
    pub fn det(&self) -> Result<Tensor> {
        self.linalg_det()
    }

    /// The sign of the determinant of each matrix, and the logarithm of its size.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f32, 1.0, 1.0, 0.0], &[2, 2], Device::cpu())?;
    /// let (sign, logarithm) = a.linalg_slogdet()?;
    /// assert_eq!((sign.item::<f32>()?, logarithm.item::<f32>()?), (-1.0, 0.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_slogdet(&self) -> Result<(Tensor, Tensor)> {
        let op = Determinant { logarithm: true };
        let mut found = apply(&op, &[self], Dest::New, Site::caller())?;
        let logarithm = found.remove(1);
        Ok((first(found), logarithm))
    }

    /// Another name of [`Tensor::linalg_slogdet`].
    #[track_caller]
    pub fn slogdet(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_slogdet()
    }

    /// The logarithm of the determinant of each matrix; NaN where it is negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::eye(3, DType::F32)?.logdet()?.item::<f32>()?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logdet(&self) -> Result<Tensor> {
        composed("logdet", Site::caller(), || {
            let (sign, logarithm) = self.linalg_slogdet()?;
            sign.log()?.add(&logarithm)
        })
    }
}
