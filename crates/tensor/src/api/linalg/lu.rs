//! LU with partial pivoting: the factors, apart and together, and systems solved with them.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;

use super::batches::together;
use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::dispatch::{Dest, first};
use crate::ops::linalg::lu::{LuFactor, LuSolve, RowOrder, check_unpack};
use crate::prepare::{apply, apply_one};

options! {
    /// How a matrix is factored by LU.
    LuOptions {
        /// Whether rows are exchanged; always, on the CPU.
        pivot: bool = true,
        /// Whether a pivot that is 0 is an error.
        check_errors: bool = false,
    }
}

options! {
    /// What [`Tensor::linalg_lu_solve_with`] solves.
    LinalgLuSolveOptions {
        /// `A X = B`, else `X A = B`.
        left: bool = true,
        /// With the transpose of A.
        adjoint: bool = false,
    }
}

options! {
    /// Which parts [`Tensor::lu_unpack_with`] makes; others are empty.
    LuUnpackOptions {
        /// The factors L and U.
        unpack_data: bool = true,
        /// The permutation P.
        unpack_pivots: bool = true,
    }
}

fn check_pivot(op: &'static str, options: &LuOptions) -> Result<()> {
    if options.pivot {
        return Ok(());
    }
    Err(Error::shape(op, "on the CPU rows are always exchanged; leave `pivot` as it is"))
}

/// The factors of `a`, their pivots and what was wrong.
fn factored(a: &Tensor, strict: bool, site: Site) -> Result<(Tensor, Tensor, Tensor)> {
    let mut found = apply(&LuFactor { strict }, &[a], Dest::New, site)?;
    let (info, pivots) = (found.remove(2), found.remove(1));
    Ok((first(found), pivots, info))
}

impl Tensor {
    /// Both factors of each matrix by LU with partial pivoting, in one matrix, and the pivots.
    ///
    /// The pivots are LAPACK's: row `i` was exchanged with row `pivots[i] - 1`, in this order. A
    /// pivot that is 0 is an error.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 2.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (lu, pivots) = a.linalg_lu_factor()?;
    /// assert_eq!(lu.to_vec::<f32>()?, [2.0, 2.0, 0.5, 1.0]);
    /// assert_eq!(pivots.to_vec::<i32>()?, [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_lu_factor(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_lu_factor_with(LuOptions::new())
    }

    /// [`Tensor::linalg_lu_factor`], told whether to exchange rows.
    #[track_caller]
    pub fn linalg_lu_factor_with(&self, options: LuOptions) -> Result<(Tensor, Tensor)> {
        check_pivot("linalg_lu_factor", &options)?;
        let (lu, pivots, _) = factored(self, true, Site::caller())?;
        Ok((lu, pivots))
    }

    /// [`Tensor::linalg_lu_factor`], and for each matrix the place of the first pivot that is 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (_, _, info) = Tensor::ones(&[2, 2], DType::F32)?.linalg_lu_factor_ex()?;
    /// assert_eq!(info.item::<i32>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_lu_factor_ex(&self) -> Result<(Tensor, Tensor, Tensor)> {
        self.linalg_lu_factor_ex_with(LuOptions::new())
    }

    /// [`Tensor::linalg_lu_factor_ex`], with a pivot that is 0 an error or not.
    #[track_caller]
    pub fn linalg_lu_factor_ex_with(&self, options: LuOptions) -> Result<(Tensor, Tensor, Tensor)> {
        check_pivot("linalg_lu_factor_ex", &options)?;
        factored(self, options.check_errors, Site::caller())
    }

    /// The factors P, L and U of each matrix: `A = P L U`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 2.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (p, l, u) = a.linalg_lu()?;
    /// assert_eq!(p.matmul(&l)?.matmul(&u)?.to_vec::<f32>()?, [1.0, 2.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_lu(&self) -> Result<(Tensor, Tensor, Tensor)> {
        self.linalg_lu_with(LuOptions::new())
    }

    /// [`Tensor::linalg_lu`], told whether to exchange rows.
    #[track_caller]
    pub fn linalg_lu_with(&self, options: LuOptions) -> Result<(Tensor, Tensor, Tensor)> {
        check_pivot("linalg_lu", &options)?;
        let site = Site::caller();
        composed("linalg_lu", site, || {
            let (lu, pivots, _) = factored(self, false, site)?;
            lu.lu_unpack(&pivots)
        })
    }

    /// The factors P, L and U out of the matrix that holds both and the pivots.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 2.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (lu, pivots) = a.linalg_lu_factor()?;
    /// let (p, l, u) = lu.lu_unpack(&pivots)?;
    /// assert_eq!(p.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!(l.to_vec::<f32>()?, [1.0, 0.0, 0.5, 1.0]);
    /// assert_eq!(u.to_vec::<f32>()?, [2.0, 2.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lu_unpack(&self, pivots: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        self.lu_unpack_with(pivots, LuUnpackOptions::new())
    }

    /// [`Tensor::lu_unpack`], of the factors or the permutation alone.
    #[track_caller]
    pub fn lu_unpack_with(
        &self,
        pivots: &Tensor,
        options: LuUnpackOptions,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let site = Site::caller();
        composed("lu_unpack", site, || {
            if pivots.dtype() != DType::I32 {
                let why = format!("pivots are int32, not {}", pivots.dtype());
                return Err(Error::dtype("lu_unpack", why));
            }
            let (lead, rows, columns) = check_unpack(self.meta(), pivots.meta())?;
            let small = rows.min(columns) as i64;
            let kind = (self.dtype(), self.device());
            let none = || Tensor::empty(&[0], kind);
            let (l, u) = if options.unpack_data {
                let l = self.narrow(-1, 0, small)?.tril(-1)?;
                let one = Tensor::eye([rows as i64, small], kind)?;
                (l.add(&one)?, self.narrow(-2, 0, small)?.triu(0)?)
            } else {
                (none()?, none()?)
            };
            if !options.unpack_pivots {
                return Ok((none()?, l, u));
            }
            let order = apply_one(&RowOrder { rows }, &[pivots], site)?;
            let sizes: Vec<i64> =
                lead.iter().copied().chain([rows, rows]).map(|size| size as i64).collect();
            let p = Tensor::zeros(&sizes, kind)?;
            p.scatter_(-2, &order.unsqueeze(-2)?, 1.0, None)?;
            Ok((p, l, u))
        })
    }

    /// Solves `A X = B` with the factors of A that [`Tensor::linalg_lu_factor`] gives.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f32, 2.0, 4.0, 0.0], &[2, 2], Device::cpu())?;
    /// let (lu, pivots) = a.linalg_lu_factor()?;
    /// let x = lu.linalg_lu_solve(&pivots, &Tensor::ones(&[2, 1], DType::F32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.25, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_lu_solve(&self, pivots: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.linalg_lu_solve_with(pivots, b, LinalgLuSolveOptions::new())
    }

    /// [`Tensor::linalg_lu_solve`] from the other side, or with the transpose.
    #[track_caller]
    pub fn linalg_lu_solve_with(
        &self,
        pivots: &Tensor,
        b: &Tensor,
        options: LinalgLuSolveOptions,
    ) -> Result<Tensor> {
        let LinalgLuSolveOptions { left, adjoint } = options;
        composed("linalg_lu_solve", Site::caller(), || {
            let [factors, column, b] =
                together("linalg_lu_solve", [self, &pivots.unsqueeze(-1)?, b])?;
            factors.factored_solve(&column.squeeze_with(-1)?, &b, left, adjoint)
        })
    }

    /// Solves `A X = self` with the factors of A, in the order that PyTorch had before
    /// [`Tensor::linalg_lu_solve`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f32, 2.0, 4.0, 0.0], &[2, 2], Device::cpu())?;
    /// let (lu, pivots) = a.linalg_lu_factor()?;
    /// let x = Tensor::ones(&[2, 1], DType::F32)?.lu_solve(&lu, &pivots)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.25, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lu_solve(&self, lu: &Tensor, pivots: &Tensor) -> Result<Tensor> {
        lu.linalg_lu_solve(pivots, self)
    }

    /// The kernel behind [`Tensor::linalg_lu_solve`], for operands of one batch.
    #[track_caller]
    pub(crate) fn factored_solve(
        &self,
        pivots: &Tensor,
        b: &Tensor,
        left: bool,
        adjoint: bool,
    ) -> Result<Tensor> {
        apply_one(&LuSolve { left, adjoint }, &[self, pivots, b], Site::caller())
    }
}
