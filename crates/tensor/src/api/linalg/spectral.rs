//! Eigenvalues of symmetric matrices, and singular values.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::dispatch::{Dest, first};
use crate::ops::linalg::spectral::{Eigen, Svd};
use crate::prepare::apply;
use plimsoll_kernels::cpu::svd::Vectors;

/// Which triangle of a symmetric matrix is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uplo {
    /// The lower one.
    L,
    /// The upper one.
    U,
}

impl std::str::FromStr for Uplo {
    type Err = Error;

    fn from_str(word: &str) -> Result<Uplo> {
        match word {
            "L" | "l" => Ok(Uplo::L),
            "U" | "u" => Ok(Uplo::U),
            _ => Err(Error::shape(
                "linalg_eigh",
                format!("a triangle is \"L\", the lower, or \"U\", the upper, and not {word:?}"),
            )),
        }
    }
}

/// LAPACK's or cuSOLVER's algorithm, as PyTorch names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Singular values by QR, on a GPU.
    Gesvd,
    /// Singular values by rotations, on a GPU.
    Gesvdj,
    /// Approximate singular values, on a GPU.
    Gesvda,
    /// Least squares by QR, for matrices of full rank.
    Gels,
    /// Least squares by QR with pivots.
    Gelsy,
    /// Least squares by singular values, divided and conquered.
    Gelsd,
    /// Least squares by singular values.
    Gelss,
}

impl std::str::FromStr for Driver {
    type Err = Error;

    fn from_str(word: &str) -> Result<Driver> {
        Ok(match word {
            "gesvd" => Driver::Gesvd,
            "gesvdj" => Driver::Gesvdj,
            "gesvda" => Driver::Gesvda,
            "gels" => Driver::Gels,
            "gelsy" => Driver::Gelsy,
            "gelsd" => Driver::Gelsd,
            "gelss" => Driver::Gelss,
            _ => {
                let why = format!("there is no driver {word:?}; leave it out");
                return Err(Error::shape("driver", why));
            }
        })
    }
}

options! {
    /// Which triangle [`Tensor::linalg_eigh_with`] reads.
    EighOptions {
        /// The lower, or the upper.
        uplo: Uplo = Uplo::L,
    }
}

options! {
    /// What [`Tensor::linalg_svd_with`] makes.
    LinalgSvdOptions {
        /// Whether the vectors are a whole basis of each side, and not only as many as there are
        /// values.
        full_matrices: bool = true,
        /// An algorithm of the GPU's libraries; there is none to choose here.
        driver: Option<Driver> = None,
    }
}

options! {
    /// What [`Tensor::svd_with`] makes.
    SvdOptions {
        /// Only as many vectors as there are values, and not a whole basis of each side.
        some: bool = true,
        /// Whether the vectors are computed; zeros otherwise.
        compute_uv: bool = true,
    }
}

/// A driver is PyTorch's choice on a GPU, and an error on the CPU.
fn check_driver(name: &'static str, options: &LinalgSvdOptions) -> Result<()> {
    match options.driver {
        None => Ok(()),
        Some(_) => Err(Error::shape(name, "on the CPU there is no driver to choose; leave it out")),
    }
}

/// U, S and Vh.
fn decomposed(x: &Tensor, vectors: Vectors, site: Site) -> Result<(Tensor, Tensor, Tensor)> {
    let mut found = apply(&Svd { vectors }, &[x], Dest::New, site)?;
    let (vh, u) = (found.remove(2), found.remove(1));
    Ok((u, first(found), vh))
}

impl Tensor {
    /// Eigenvalues, in rising order, and eigenvectors, as columns, of each symmetric matrix.
    ///
    /// Only the lower triangle is read. Eigenvectors are given up to their sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[2.0f64, 1.0, 1.0, 2.0], &[2, 2], Device::cpu())?;
    /// let (values, vectors) = a.linalg_eigh()?;
    /// assert!((values.to_vec::<f64>()?[1] - 3.0).abs() < 1e-12);
    /// assert_eq!(vectors.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_eigh(&self) -> Result<(Tensor, Tensor)> {
        self.linalg_eigh_with(EighOptions::new())
    }

    /// [`Tensor::linalg_eigh`] of the other triangle.
    #[track_caller]
    pub fn linalg_eigh_with(&self, options: EighOptions) -> Result<(Tensor, Tensor)> {
        let op = Eigen { upper: options.uplo == Uplo::U, vectors: true };
        let mut found = apply(&op, &[self], Dest::New, Site::caller())?;
        let vectors = found.remove(1);
        Ok((first(found), vectors))
    }

    /// Eigenvalues, in rising order, of each symmetric matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[0.0f64, 1.0, 1.0, 0.0], &[2, 2], Device::cpu())?;
    /// let values = a.linalg_eigvalsh()?.to_vec::<f64>()?;
    /// assert!((values[0] + 1.0).abs() < 1e-12 && (values[1] - 1.0).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_eigvalsh(&self) -> Result<Tensor> {
        self.linalg_eigvalsh_with(EighOptions::new())
    }

    /// [`Tensor::linalg_eigvalsh`] of the other triangle.
    #[track_caller]
    pub fn linalg_eigvalsh_with(&self, options: EighOptions) -> Result<Tensor> {
        let op = Eigen { upper: options.uplo == Uplo::U, vectors: false };
        apply(&op, &[self], Dest::New, Site::caller()).map(first)
    }

    /// The singular value decomposition of each matrix, `A = U diag(S) Vh`, with whole bases of
    /// both sides.
    ///
    /// Values fall; vectors are given up to their signs.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[3.0f64, 0.0, 0.0, 4.0], &[2, 2], Device::cpu())?;
    /// let (u, s, vh) = a.linalg_svd()?;
    /// let values = s.to_vec::<f64>()?;
    /// assert!((values[0] - 4.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12);
    /// assert!(u.mul(&s)?.matmul(&vh)?.allclose(&a)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        self.linalg_svd_with(LinalgSvdOptions::new())
    }

    /// [`Tensor::linalg_svd`], or with as many vectors as there are values.
    #[track_caller]
    pub fn linalg_svd_with(&self, options: LinalgSvdOptions) -> Result<(Tensor, Tensor, Tensor)> {
        check_driver("linalg_svd", &options)?;
        let vectors = if options.full_matrices { Vectors::Full } else { Vectors::Thin };
        decomposed(self, vectors, Site::caller())
    }

    /// The singular values of each matrix, in falling order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 2], DType::F64)?;
    /// let values = a.linalg_svdvals()?.to_vec::<f64>()?;
    /// assert!((values[0] - 2.0).abs() < 1e-12 && values[1].abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_svdvals(&self) -> Result<Tensor> {
        apply(&Svd { vectors: Vectors::None }, &[self], Dest::New, Site::caller()).map(first)
    }

    /// [`Tensor::linalg_svdvals`], as PyTorch writes it.
    #[track_caller]
    pub fn linalg_svdvals_with(&self, options: LinalgSvdOptions) -> Result<Tensor> {
        check_driver("linalg_svdvals", &options)?;
        self.linalg_svdvals()
    }

    /// The singular value decomposition of each matrix, `A = U diag(S) V'`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[3, 2], DType::F64)?;
    /// let (u, s, v) = a.svd()?;
    /// assert_eq!((u.shape(), s.shape(), v.shape()), (&[3, 2][..], &[2][..], &[2, 2][..]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        self.svd_with(SvdOptions::new())
    }

    /// [`Tensor::svd`] with whole bases, or without the vectors.
    #[track_caller]
    pub fn svd_with(&self, options: SvdOptions) -> Result<(Tensor, Tensor, Tensor)> {
        let site = Site::caller();
        composed("svd", site, || {
            if !options.compute_uv {
                let s = self.linalg_svdvals()?;
                let [.., rows, columns] = *self.shape() else { return Err(too_flat(self)) };
                let lead = &self.shape()[..self.rank() - 2];
                let zeros = |size: usize| {
                    let sizes: Vec<i64> =
                        lead.iter().chain(&[size, size]).map(|&n| n as i64).collect();
                    Tensor::zeros(&sizes, (self.dtype(), self.device()))
                };
                return Ok((zeros(rows)?, s, zeros(columns)?));
            }
            let vectors = if options.some { Vectors::Thin } else { Vectors::Full };
            let (u, s, vh) = decomposed(self, vectors, site)?;
            Ok((u, s, vh.transpose(-2, -1)?))
        })
    }
}

#[cold]
fn too_flat(x: &Tensor) -> Error {
    Error::shape("svd", format!("matrices are needed, not shape {:?}", x.shape()))
}
