//! What singular values and eigenvalues tell: pseudoinverses, ranks, condition numbers, least
//! squares.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::Site;

use super::batches::together;
use crate::Tensor;
use crate::api::composed;
use crate::api::linalg::{Driver, LinalgSvdOptions};
use crate::api::norm::{LinalgMatrixNormOptions, NormOrder};
use crate::api::options::{options, options_with_tensors};
use crate::autograd::{BackwardContext, Context, Function};
use crate::ops::linalg::matrices::matrices;
use crate::ops::linalg::signed;

options! {
    /// Below which size a singular value counts as 0.
    LinalgPinvOptions {
        /// That size.
        atol: Option<f64> = None,
        /// That part of the largest; the dtype's precision times the longer side, unless either is
        /// given.
        rtol: Option<f64> = None,
        /// Whether matrices are symmetric, of which the lower triangle is read.
        hermitian: bool = false,
    }
}

options_with_tensors! {
    /// [`LinalgPinvOptions`] with sizes of their own for each matrix.
    PinvTensorOptions {
        /// That size.
        atol: Option<&'a Tensor> = None,
        /// That part of the largest.
        rtol: Option<&'a Tensor> = None,
        /// Whether matrices are symmetric, of which the lower triangle is read.
        hermitian: bool = false,
    }
}

options! {
    /// Which singular values [`Tensor::pinverse_with`] takes for 0.
    PinverseOptions {
        /// Those below this part of the largest.
        rcond: f64 = 1e-15,
    }
}

options! {
    /// Which norm [`Tensor::linalg_cond_with`] takes.
    LinalgCondOptions {
        /// Its order; 2 if there is none.
        p: Option<Scalar> = None,
    }
}

options! {
    /// How [`Tensor::linalg_lstsq_with`] solves.
    LinalgLstsqOptions {
        /// The part of the largest singular value below which others count as 0.
        rcond: Option<f64> = None,
        /// LAPACK's algorithm of that name, which tells what comes out beside the solution.
        driver: Option<Driver> = None,
    }
}

/// Sizes below which values count as 0: one number for all matrices, or one for each.
#[derive(Clone, Copy)]
enum Tolerances<'a> {
    Numbers(Option<f64>, Option<f64>),
    Tensors(Option<&'a Tensor>, Option<&'a Tensor>),
}

impl Tolerances<'_> {
    /// The limit of each matrix, from its largest value; both with a last dimension of 1.
    fn limit(self, x: &Tensor, largest: &Tensor) -> Result<Tensor> {
        let [.., rows, columns] = *x.shape() else { return Ok(largest.clone()) };
        let epsilon = if x.dtype() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let usual = epsilon * rows.max(columns) as f64;
        match self {
            Tolerances::Numbers(atol, rtol) => {
                let atol = atol.unwrap_or(0.0);
                let rtol = rtol.unwrap_or(if atol > 0.0 { 0.0 } else { usual });
                largest.mul(rtol)?.clamp_min(atol)
            }
            Tolerances::Tensors(None, None) => largest.mul(usual),
            Tolerances::Tensors(atol, Some(rtol)) => {
                let relative = largest.mul(&rtol.unsqueeze(-1)?)?;
                match atol {
                    Some(atol) => relative.maximum(&atol.unsqueeze(-1)?),
                    None => Ok(relative),
                }
            }
            Tolerances::Tensors(Some(atol), None) => {
                let atol = atol.unsqueeze(-1)?;
                let rtol = Tensor::where_(&atol.gt(0.0)?, &atol.zeros_like()?, usual)?;
                largest.mul(&rtol)?.maximum(&atol)
            }
        }
    }
}

/// Singular values that count, inverted, others 0; and the vectors of both sides.
fn pseudoinverse(x: &Tensor, tolerances: Tolerances<'_>, hermitian: bool) -> Result<Tensor> {
    if x.numel() == 0 {
        let turned = x.transpose(-2, -1)?;
        return Tensor::zeros(&signed(turned.shape()), (x.dtype(), x.device()));
    }
    let invert = |values: &Tensor, sizes: &Tensor, largest: &Tensor| {
        let counts = sizes.gt(&tolerances.limit(x, largest)?)?;
        Tensor::where_(&counts, &values.reciprocal()?, 0.0)?.unsqueeze(-2)
    };
    if hermitian {
        let (values, vectors) = x.linalg_eigh()?;
        let sizes = values.abs()?;
        let largest = sizes.amax_with(crate::ReduceOptions::from(-1i64).keepdim(true))?;
        let inverted = invert(&values, &sizes, &largest)?;
        return vectors.mul(&inverted)?.matmul(&vectors.transpose(-2, -1)?);
    }
    let (u, s, vh) = x.linalg_svd_with(LinalgSvdOptions::new().full_matrices(false))?;
    let inverted = invert(&s, &s, &s.narrow(-1, 0, 1)?)?;
    vh.transpose(-2, -1)?.mul(&inverted)?.matmul(&u.transpose(-2, -1)?)
}

/// A pseudoinverse with its own derivative: that of its factors is not finite where singular values
/// are equal, and that of the whole is.
struct Pseudoinverse {
    tolerances: (Option<f64>, Option<f64>),
    hermitian: bool,
    given: bool,
}

impl Function for Pseudoinverse {
    fn name(&self) -> &'static str {
        "linalg_pinv"
    }

    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let tolerances = match self.given {
            true => Tolerances::Tensors(inputs.get(1).copied(), inputs.get(2).copied()),
            false => Tolerances::Numbers(self.tolerances.0, self.tolerances.1),
        };
        let result = pseudoinverse(inputs[0], tolerances, self.hermitian)?;
        context.save_for_backward(&[inputs[0], &result]);
        Ok(vec![result])
    }

    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let saved = context.saved_tensors();
        let (a, p) = (&saved[0], &saved[1]);
        let none = if self.given { 2 } else { 0 };
        let Some(Some(grad)) = grads.first() else { return Ok(vec![None; 1 + none]) };
        let turn = |x: &Tensor| x.transpose(-2, -1);
        let (g, pt) = (turn(grad)?, turn(p)?);
        let [.., rows, columns] = *a.shape() else { return Ok(vec![None; 1 + none]) };
        // In the order of products that makes the smaller matrices.
        let result = if rows <= columns {
            let k = g.matmul(p)?;
            let kp = k.matmul(&pt)?;
            let rest = pt.matmul(p)?.matmul(&g.sub(&k.matmul(a)?)?)?;
            kp.sub(&turn(&p.matmul(&k)?)?)?.sub(&a.matmul(p)?.matmul(&kp)?)?.add(&rest)?
        } else {
            let k = p.matmul(&g)?;
            let pk = pt.matmul(&k)?;
            let rest = g.sub(&a.matmul(&k)?)?.matmul(p)?.matmul(&pt)?;
            pk.sub(&turn(&k.matmul(p)?)?)?.sub(&pk.matmul(p)?.matmul(a)?)?.add(&rest)?
        };
        let mut gradients = vec![Some(result)];
        gradients.resize(1 + none, None);
        Ok(gradients)
    }
}

fn pinv(
    op: &'static str,
    x: &Tensor,
    tolerances: Tolerances<'_>,
    hermitian: bool,
    site: Site,
) -> Result<Tensor> {
    matrices(op, x.meta())?;
    composed(op, site, || {
        let found = match tolerances {
            Tolerances::Numbers(atol, rtol) => {
                Pseudoinverse { tolerances: (atol, rtol), hermitian, given: false }.apply(&[x])?
            }
            Tolerances::Tensors(None, None) => {
                Pseudoinverse { tolerances: (None, None), hermitian, given: false }.apply(&[x])?
            }
            Tolerances::Tensors(atol, rtol) => {
                // Both as tensors: what is not given is what it would be.
                let atol = match atol {
                    Some(atol) => atol.to(x.dtype())?,
                    None => Tensor::zeros(&[], (x.dtype(), x.device()))?,
                };
                let rtol = match rtol {
                    Some(rtol) => rtol.to(x.dtype())?,
                    None => {
                        let ones = atol.ones_like()?.unsqueeze(-1)?;
                        let usual =
                            Tolerances::Numbers(None, None).limit(x, &ones)?.squeeze_with(-1)?;
                        Tensor::where_(&atol.gt(0.0)?, &atol.zeros_like()?, &usual)?
                    }
                };
                let op = Pseudoinverse { tolerances: (None, None), hermitian, given: true };
                op.apply(&[x, &atol, &rtol])?
            }
        };
        found.into_iter().next().ok_or_else(|| Error::shape(op, "no result"))
    })
}

/// How many values of each matrix count.
fn rank(x: &Tensor, tolerances: Tolerances<'_>, hermitian: bool, site: Site) -> Result<Tensor> {
    const OP: &str = "linalg_matrix_rank";
    matrices(OP, x.meta())?;
    composed(OP, site, || {
        let x = x.detach();
        if x.numel() == 0 {
            let lead = &x.shape()[..x.rank() - 2];
            return Tensor::zeros(&signed(lead), (DType::I64, x.device()));
        }
        let sizes = if hermitian { x.linalg_eigvalsh()?.abs()? } else { x.linalg_svdvals()? };
        let largest = match hermitian {
            true => sizes.amax_with(crate::ReduceOptions::from(-1i64).keepdim(true))?,
            false => sizes.narrow(-1, 0, 1)?,
        };
        sizes.gt(&tolerances.limit(&x, &largest)?)?.sum_with(-1i64)
    })
}

impl Tensor {
    /// The pseudoinverse of each matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[2.0f64, 0.0, 0.0, 0.0], &[2, 2], Device::cpu())?;
    /// let p = a.linalg_pinv()?.to_vec::<f64>()?;
    /// assert!((p[0] - 0.5).abs() < 1e-12 && p[3].abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_pinv(&self) -> Result<Tensor> {
        self.linalg_pinv_with(LinalgPinvOptions::new())
    }

    /// [`Tensor::linalg_pinv`], told which singular values count as 0.
    #[track_caller]
    pub fn linalg_pinv_with(&self, options: LinalgPinvOptions) -> Result<Tensor> {
        let LinalgPinvOptions { atol, rtol, hermitian } = options;
        pinv("linalg_pinv", self, Tolerances::Numbers(atol, rtol), hermitian, Site::caller())
    }

    /// [`Tensor::linalg_pinv`], told for each matrix which singular values count as 0.
    #[track_caller]
    pub fn linalg_pinv_by(&self, options: PinvTensorOptions<'_>) -> Result<Tensor> {
        let PinvTensorOptions { atol, rtol, hermitian } = options;
        pinv("linalg_pinv", self, Tolerances::Tensors(atol, rtol), hermitian, Site::caller())
    }

    /// [`Tensor::linalg_pinv`] without singular values below `rcond` of the largest.
    #[track_caller]
    pub fn pinverse(&self) -> Result<Tensor> {
        self.pinverse_with(PinverseOptions::new())
    }

    /// [`Tensor::pinverse`] of another precision.
    #[track_caller]
    pub fn pinverse_with(&self, options: PinverseOptions) -> Result<Tensor> {
        let tolerances = Tolerances::Numbers(Some(0.0), Some(options.rcond));
        pinv("pinverse", self, tolerances, false, Site::caller())
    }

    /// How many singular values of each matrix are not 0, as far as its precision tells.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[3, 3], DType::F32)?.linalg_matrix_rank()?.item::<i64>()?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_matrix_rank(&self) -> Result<Tensor> {
        self.linalg_matrix_rank_with(LinalgPinvOptions::new())
    }

    /// [`Tensor::linalg_matrix_rank`], told which singular values count as 0.
    #[track_caller]
    pub fn linalg_matrix_rank_with(&self, options: LinalgPinvOptions) -> Result<Tensor> {
        let LinalgPinvOptions { atol, rtol, hermitian } = options;
        rank(self, Tolerances::Numbers(atol, rtol), hermitian, Site::caller())
    }

    /// [`Tensor::linalg_matrix_rank`], told for each matrix which singular values count as 0.
    #[track_caller]
    pub fn linalg_matrix_rank_by(&self, options: PinvTensorOptions<'_>) -> Result<Tensor> {
        let PinvTensorOptions { atol, rtol, hermitian } = options;
        rank(self, Tolerances::Tensors(atol, rtol), hermitian, Site::caller())
    }

    /// The condition number of each matrix: its largest singular value by its smallest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::from_slice(&[4.0f64, 0.0, 0.0, 2.0], &[2, 2], Device::cpu())?;
    /// assert!((a.linalg_cond()?.item::<f64>()? - 2.0).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_cond(&self) -> Result<Tensor> {
        self.linalg_cond_with(LinalgCondOptions::new())
    }

    /// [`Tensor::linalg_cond`] by a norm of some order: that of the matrix times its inverse's.
    #[track_caller]
    pub fn linalg_cond_with(&self, options: LinalgCondOptions) -> Result<Tensor> {
        const OP: &str = "linalg_cond";
        let site = Site::caller();
        matrices(OP, self.meta())?;
        let order = options.p.map_or(2.0, Scalar::to_f64);
        composed(OP, site, || {
            if order.abs() == 2.0 {
                if self.numel() == 0 {
                    return no_condition(self);
                }
                let values = self.linalg_svdvals()?;
                let (largest, smallest) = (values.select(-1, 0)?, values.select(-1, -1)?);
                return if order > 0.0 { largest.div(&smallest) } else { smallest.div(&largest) };
            }
            if order.abs() != 1.0 && order.abs() != f64::INFINITY {
                let why = format!("the order of a matrix norm is 1, 2 or infinity, not {order}");
                return Err(Error::shape(OP, why));
            }
            conditioned(OP, self, |x| {
                x.linalg_matrix_norm_of(order, LinalgMatrixNormOptions::new())
            })
        })
    }

    /// [`Tensor::linalg_cond`] by a norm that has a name.
    #[track_caller]
    pub fn linalg_cond_named(&self, p: NormOrder) -> Result<Tensor> {
        const OP: &str = "linalg_cond";
        matrices(OP, self.meta())?;
        composed(OP, Site::caller(), || match p {
            NormOrder::Fro => conditioned(OP, self, |x| x.linalg_matrix_norm()),
            NormOrder::Nuc => {
                check_square(OP, self)?;
                if self.numel() == 0 {
                    return no_condition(self);
                }
                let values = self.linalg_svdvals()?;
                values.sum_with(-1i64)?.mul(&values.reciprocal()?.sum_with(-1i64)?)
            }
        })
    }

    /// The solution X of `A X = B` that leaves the least squares; residuals, ranks and singular
    /// values.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 1], DType::F64)?;
    /// let b = Tensor::from_slice(&[1.0f64, 3.0], &[2, 1], Device::cpu())?;
    /// let (x, _, rank, _) = a.linalg_lstsq(&b)?;
    /// assert!((x.item::<f64>()? - 2.0).abs() < 1e-12 && rank.item::<i64>()? == 1);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_lstsq(&self, b: &Tensor) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
        self.linalg_lstsq_with(b, LinalgLstsqOptions::new())
    }

    /// [`Tensor::linalg_lstsq`] of another precision, or with what another driver gives beside the
    /// solution.
    #[track_caller]
    pub fn linalg_lstsq_with(
        &self,
        b: &Tensor,
        options: LinalgLstsqOptions,
    ) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
        const OP: &str = "linalg_lstsq";
        matrices(OP, self.meta())?;
        let site = Site::caller();
        composed(OP, site, || least_squares(self, b, &options, site))
    }
}

fn check_square(op: &'static str, x: &Tensor) -> Result<()> {
    match *x.shape() {
        [.., rows, columns] if rows == columns => Ok(()),
        _ => {
            let why = format!("the matrices must be square, and shape {:?} is not", x.shape());
            Err(Error::shape(op, why))
        }
    }
}

/// What empty matrices have for a condition number.
fn no_condition(x: &Tensor) -> Result<Tensor> {
    Tensor::zeros(&signed(&x.shape()[..x.rank() - 2]), (x.dtype(), x.device()))
}

/// The norm times that of the inverse; infinite for a singular matrix.
fn conditioned(
    op: &'static str,
    x: &Tensor,
    norm: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    check_square(op, x)?;
    if x.numel() == 0 {
        return no_condition(x);
    }
    let (inverse, info) = x.linalg_inv_ex()?;
    let singular = info.gt(0)?.unsqueeze(-1)?.unsqueeze(-1)?;
    let inverse = inverse.masked_fill(&singular, f64::INFINITY)?;
    norm(x)?.mul(&norm(&inverse)?)
}

fn least_squares(
    a: &Tensor,
    b: &Tensor,
    options: &LinalgLstsqOptions,
    site: Site,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    const OP: &str = "linalg_lstsq";
    let driver = options.driver.unwrap_or(Driver::Gelsy);
    if matches!(driver, Driver::Gesvd | Driver::Gesvdj | Driver::Gesvda) {
        return Err(Error::shape(OP, "the drivers are gels, gelsy, gelsd and gelss"));
    }
    let is_vector =
        b.rank() == 1 || (a.rank() == b.rank() + 1 && a.shape()[..b.rank()] == *b.shape());
    let column = if is_vector { b.unsqueeze(-1)? } else { b.clone() };
    let fits = column.rank() >= 2
        && column.shape()[column.rank() - 2] == a.shape()[a.rank() - 2]
        && b.dtype() == a.dtype();
    if !fits {
        return Err(Error::shape(
            OP,
            format!(
                "matrices of shape {:?} and {} and a right side of shape {:?} and {} do not fit",
                a.shape(),
                a.dtype(),
                b.shape(),
                b.dtype()
            ),
        ));
    }
    let [a, column] = together(OP, [a, &column])?;
    let (rows, columns) = (a.shape()[a.rank() - 2], a.shape()[a.rank() - 1]);
    let tolerances = Tolerances::Numbers(options.rcond.map(|_| 0.0), options.rcond);
    let x = pinv(OP, &a, tolerances, false, site)?.matmul(&column)?;
    let none = |dtype: DType| Tensor::zeros(&[0], (dtype, a.device()));
    let ranks = match driver {
        Driver::Gels => none(DType::I64)?,
        _ => rank(&a, tolerances, false, site)?,
    };
    let values = match driver {
        Driver::Gelsd | Driver::Gelss => a.detach().linalg_svdvals()?,
        _ => none(a.dtype())?,
    };
    // Of full rank, and only then, the rest is what no solution takes away.
    let has_residuals = rows > columns
        && match driver {
            Driver::Gelsy => false,
            Driver::Gels => true,
            _ => ranks.amin()?.item::<i64>()? == columns as i64,
        };
    let residuals = match has_residuals {
        true => {
            let rest = a.matmul(&x)?.sub(&column)?;
            rest.mul(&rest)?.sum_with(-2i64)?
        }
        // Empty, and in the graph if the solution is.
        false => x.reshape(&[-1])?.narrow(0, 0, 0)?,
    };
    let x = if is_vector { x.squeeze_with(-1)? } else { x };
    Ok((x, residuals, ranks, values))
}
