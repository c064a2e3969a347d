//! QR by Householder's reflections, and products with them.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::autograd::is_grad_enabled;
use crate::dispatch::{Dest, first};
use crate::ops::linalg::qr::{Qr, Reflected, Reflections, check_reflections};
use crate::ops::linalg::signed;
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::triangular::Triangle;

/// What [`Tensor::linalg_qr_with`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QrMode {
    /// Q with as many columns as make a basis of those of A.
    Reduced,
    /// Q with a whole basis.
    Complete,
    /// R alone; Q is empty.
    R,
}

impl std::str::FromStr for QrMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<QrMode> {
        match word {
            "reduced" => Ok(QrMode::Reduced),
            "complete" => Ok(QrMode::Complete),
            "r" => Ok(QrMode::R),
            _ => Err(Error::shape(
                "linalg_qr",
                format!("a mode is \"reduced\", \"complete\" or \"r\", and not {word:?}"),
            )),
        }
    }
}

options! {
    /// How [`Tensor::linalg_qr_with`] decomposes.
    LinalgQrOptions {
        /// What it makes.
        mode: QrMode = QrMode::Reduced,
    }
}

options! {
    /// How [`Tensor::qr_with`] decomposes.
    QrOptions {
        /// With as many columns as make a basis, and not a whole one.
        some: bool = true,
    }
}

options! {
    /// Which product [`Tensor::ormqr_with`] makes.
    OrmqrOptions {
        /// `Q C`, else `C Q`.
        left: bool = true,
        /// With the transpose of Q.
        transpose: bool = false,
    }
}

fn qr(x: &Tensor, mode: QrMode, site: Site) -> Result<(Tensor, Tensor)> {
    let op = Qr { complete: mode == QrMode::Complete, basis: mode != QrMode::R };
    let mut found = apply(&op, &[x], Dest::New, site)?;
    let q = match mode {
        QrMode::R => Tensor::empty(&[0], (x.dtype(), x.device()))?,
        _ => found.remove(1),
    };
    Ok((q, first(found)))
}

impl Tensor {
    /// The QR decomposition of each matrix: Q with orthonormal columns, R upper triangular.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f64, 1.0, 4.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (q, r) = a.linalg_qr()?;
    /// assert!(q.matmul(&r)?.allclose(&a)?);
    /// assert!((r.to_vec::<f64>()?[0] + 5.0).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_qr(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_qr_with(LinalgQrOptions::new())
    }

    /// [`Tensor::linalg_qr`] with a whole basis, or of R alone.
    #[track_caller]
    pub fn linalg_qr_with(&self, options: LinalgQrOptions) -> Result<(Tensor, Tensor)> {
        qr(self, options.mode, Site::caller())
    }

    /// Another name of [`Tensor::linalg_qr`].
    #[track_caller]
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        self.qr_with(QrOptions::new())
    }

    /// [`Tensor::qr`], or with a whole basis.
    #[track_caller]
    pub fn qr_with(&self, options: QrOptions) -> Result<(Tensor, Tensor)> {
        let mode = if options.some { QrMode::Reduced } else { QrMode::Complete };
        composed("qr", Site::caller(), || qr(self, mode, Site::caller()))
    }

    /// The QR decomposition as LAPACK packs it: R above the reflections' vectors, and their
    /// factors.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f64, 4.0], &[2, 1], Device::cpu())?;
    /// let (packed, tau) = a.geqrf()?;
    /// let (packed, tau) = (packed.to_vec::<f64>()?, tau.to_vec::<f64>()?);
    /// assert!((packed[0] + 5.0).abs() < 1e-12 && (packed[1] - 0.5).abs() < 1e-12);
    /// assert!((tau[0] - 1.6).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn geqrf(&self) -> Result<(Tensor, Tensor)> {
        let mut found = apply(&Reflections, &[self], Dest::New, Site::caller())?;
        let tau = found.remove(1);
        Ok((first(found), tau))
    }

    /// The first columns of a product of reflections, as many as their vectors have: Q of
    /// [`Tensor::geqrf`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f64, 1.0, 4.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (packed, tau) = a.geqrf()?;
    /// let (q, _) = a.linalg_qr()?;
    /// assert!(packed.linalg_householder_product(&tau)?.allclose(&q)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_householder_product(&self, tau: &Tensor) -> Result<Tensor> {
        let site = Site::caller();
        const OP: &str = "linalg_householder_product";
        composed(OP, site, || {
            let (lead, rows, columns) = check_reflections(OP, self.meta(), tau.meta())?;
            let op = Reflected { left: true, transposed: false };
            if !needs_gradient(&[self, tau]) {
                return apply_one(&op, &[self, tau], site);
            }
            let kind = (self.dtype(), self.device());
            let one = Tensor::eye([rows as i64, columns as i64], kind)?;
            let sizes: Vec<usize> = lead.iter().copied().chain([rows, columns]).collect();
            reflect(self, tau, &one.expand(&signed(&sizes))?, false)
        })
    }

    /// Another name of [`Tensor::linalg_householder_product`].
    #[track_caller]
    pub fn orgqr(&self, tau: &Tensor) -> Result<Tensor> {
        self.linalg_householder_product(tau)
    }

    /// The product of Q, a product of reflections as [`Tensor::geqrf`] gives them, and a matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f64, 1.0, 4.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (packed, tau) = a.geqrf()?;
    /// assert!(packed.ormqr(&tau, &packed.triu(0)?)?.allclose(&a)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ormqr(&self, tau: &Tensor, other: &Tensor) -> Result<Tensor> {
        self.ormqr_with(tau, other, OrmqrOptions::new())
    }

    /// [`Tensor::ormqr`] from the other side, or with the transpose.
    #[track_caller]
    pub fn ormqr_with(
        &self,
        tau: &Tensor,
        other: &Tensor,
        options: OrmqrOptions,
    ) -> Result<Tensor> {
        let (site, OrmqrOptions { left, transpose }) = (Site::caller(), options);
        composed("ormqr", site, || {
            check_product(self, tau, other, left)?;
            if !needs_gradient(&[self, tau, other]) {
                let op = Reflected { left, transposed: transpose };
                return apply_one(&op, &[self, tau, other], site);
            }
            if left {
                return reflect(self, tau, other, transpose);
            }
            // From the right: the same of the transposes.
            let turned = reflect(self, tau, &other.transpose(-2, -1)?, !transpose)?;
            turned.transpose(-2, -1)
        })
    }
}

fn needs_gradient(operands: &[&Tensor]) -> bool {
    is_grad_enabled() && operands.iter().any(|operand| operand.requires_grad())
}

fn check_product(vectors: &Tensor, tau: &Tensor, other: &Tensor, left: bool) -> Result<()> {
    let (lead, _, _) = match (vectors.rank(), other.rank()) {
        (0 | 1, _) | (_, 0 | 1) => {
            return Err(Error::shape(
                "ormqr",
                format!("matrices are needed, not {:?} and {:?}", vectors.shape(), other.shape()),
            ));
        }
        _ => check_vectors(vectors, tau)?,
    };
    let [before @ .., rows, columns] = other.shape() else { return Ok(()) };
    let size = if left { *rows } else { *columns };
    let fits = before == lead && size == vectors.shape()[vectors.rank() - 2];
    if fits && other.dtype() == vectors.dtype() {
        return Ok(());
    }
    Err(Error::shape(
        "ormqr",
        format!(
            "vectors of shape {:?} and {} and a matrix of shape {:?} and {} do not fit",
            vectors.shape(),
            vectors.dtype(),
            other.shape(),
            other.dtype()
        ),
    ))
}

/// As `check_reflections`; here vectors may have more columns than rows.
fn check_vectors<'a>(vectors: &'a Tensor, tau: &Tensor) -> Result<(&'a [usize], usize, usize)> {
    let [lead @ .., rows, columns] = vectors.shape() else {
        return Err(Error::shape("ormqr", "matrices are needed"));
    };
    let small = *rows.min(columns);
    let fits = tau.shape().split_last();
    if fits.is_some_and(|(count, before)| *count <= small && before == lead)
        && tau.dtype() == vectors.dtype()
    {
        return Ok((lead, *rows, *columns));
    }
    Err(Error::shape(
        "ormqr",
        format!(
            "vectors of shape {:?} and factors of shape {:?}, {}: there are no more factors than vectors have rows \
             and columns",
            vectors.shape(),
            tau.shape(),
            tau.dtype()
        ),
    ))
}

/// The product of reflections and `other`, of operations that have derivatives. With the vectors as
/// columns of V it is `I - V T V'`, and T solves a triangular system.
fn reflect(vectors: &Tensor, tau: &Tensor, other: &Tensor, transposed: bool) -> Result<Tensor> {
    let count = tau.shape()[tau.rank() - 1] as i64;
    let rows = vectors.shape()[vectors.rank() - 2] as i64;
    let kind = (vectors.dtype(), vectors.device());
    let below = vectors.narrow(-1, 0, count)?.tril(-1)?;
    let v = below.add(&Tensor::eye([rows, count], kind)?)?;
    let vt = v.transpose(-2, -1)?;
    let (factors, upper) = (tau.unsqueeze(-1)?, vt.matmul(&v)?.triu(1)?);
    let onto = vt.matmul(other)?;
    let inner = if transposed {
        // The transpose of T: its system is the lower one.
        let lower = upper.mul(&factors)?.transpose(-2, -1)?;
        let half = onto.triangular(&lower, Triangle { upper: false, left: true, unit: true })?;
        half.mul(&factors)?
    } else {
        let system = upper.mul(&factors)?;
        let unit = Triangle { upper: true, left: true, unit: true };
        onto.mul(&factors)?.triangular(&system, unit)?
    };
    other.sub(&v.matmul(&inner)?)
}
