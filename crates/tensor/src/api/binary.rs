//! Arithmetic methods of two operands, and the operators. Operands are broadcast and promoted as in PyTorch; the second may be a host
//! number.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::{Site, enter_operation};

use super::options::Other;
use super::promotion::result_type;
use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one};
use crate::ops::binary::{Arithmetic, Binary, Operand};

impl Tensor {
    /// The sum of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.add(&x)?.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// assert_eq!(x.add(0.5)?.to_vec::<f32>()?, [0.5, 1.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn add<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Add, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// `self + alpha * other`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(x.add_alpha(&x, 2.0)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn add_alpha<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        new(Arithmetic::Add, self, other.into(), alpha.into(), Site::caller())
    }

    /// [`Tensor::add`] in place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// x.add_(&x)?.add_(1)?;
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn add_<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
        in_place(Arithmetic::Add, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// `self += alpha * other`.
    #[track_caller]
    pub fn add_alpha_<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<&Tensor> {
        in_place(Arithmetic::Add, self, other.into(), alpha.into(), Site::caller())
    }

    /// [`Tensor::add`] into `out`.
    #[track_caller]
    pub fn add_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Add, self, other.into(), Scalar::Int(1), out, Site::caller())
    }

    /// [`Tensor::add_alpha`] into `out`.
    #[track_caller]
    pub fn add_alpha_out<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
        out: &Tensor,
    ) -> Result<()> {
        into(Arithmetic::Add, self, other.into(), alpha.into(), out, Site::caller())
    }

    /// The difference of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// assert_eq!(x.sub(1)?.to_vec::<i64>()?, [-1, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sub<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Sub, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// `self - alpha * other`.
    #[track_caller]
    pub fn sub_alpha<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        new(Arithmetic::Sub, self, other.into(), alpha.into(), Site::caller())
    }

    /// The number minus each element: `2 - x`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(x.rsub(3.0)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rsub(&self, number: impl Into<Scalar>) -> Result<Tensor> {
        reversed(Arithmetic::Sub, self, number.into(), Site::caller())
    }

    /// [`Tensor::sub`] in place.
    #[track_caller]
    pub fn sub_<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
        in_place(Arithmetic::Sub, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// `self -= alpha * other`: a step of gradient descent.
    #[track_caller]
    pub fn sub_alpha_<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<&Tensor> {
        in_place(Arithmetic::Sub, self, other.into(), alpha.into(), Site::caller())
    }

    /// [`Tensor::sub`] into `out`.
    #[track_caller]
    pub fn sub_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Sub, self, other.into(), Scalar::Int(1), out, Site::caller())
    }

    /// [`Tensor::sub_alpha`] into `out`.
    #[track_caller]
    pub fn sub_alpha_out<'a>(
        &self,
        other: impl Into<Other<'a>>,
        alpha: impl Into<Scalar>,
        out: &Tensor,
    ) -> Result<()> {
        into(Arithmetic::Sub, self, other.into(), alpha.into(), out, Site::caller())
    }

    /// The product of both operands, element by element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.mul(&x)?.to_vec::<f32>()?, [0.0, 1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mul<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Mul, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::mul`] in place.
    #[track_caller]
    pub fn mul_<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
        in_place(Arithmetic::Mul, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::mul`] into `out`.
    #[track_caller]
    pub fn mul_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Mul, self, other.into(), Scalar::Int(1), out, Site::caller())
    }

    /// The true quotient of both operands; integers give float32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::I64)?;
    /// assert_eq!(x.div(2)?.to_vec::<f32>()?, [0.5, 1.0, 1.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn div<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Div, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// The number divided by each element: `2 / x`.
    #[track_caller]
    pub fn rdiv(&self, number: impl Into<Scalar>) -> Result<Tensor> {
        reversed(Arithmetic::Div, self, number.into(), Site::caller())
    }

    /// [`Tensor::div`] in place.
    #[track_caller]
    pub fn div_<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
        in_place(Arithmetic::Div, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::div`] into `out`.
    #[track_caller]
    pub fn div_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Div, self, other.into(), Scalar::Int(1), out, Site::caller())
    }

    /// The larger of both operands, element by element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.maximum(1.0)?.to_vec::<f32>()?, [1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn maximum<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Maximum, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::maximum`] into `out`.
    #[track_caller]
    pub fn maximum_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Maximum, self, other.into(), Scalar::Int(1), out, Site::caller())
    }

    /// The smaller of both operands, element by element; NaN wins.
    #[track_caller]
    pub fn minimum<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        new(Arithmetic::Minimum, self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::minimum`] into `out`.
    #[track_caller]
    pub fn minimum_out<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
        into(Arithmetic::Minimum, self, other.into(), Scalar::Int(1), out, Site::caller())
    }
}

/// The dtype to compute in; a quotient is a float, and bools are not subtracted.
fn compute_dtype(arithmetic: Arithmetic, a: &Tensor, b: Other<'_>) -> Result<DType> {
    let dtype = result_type(&[Other::Tensor(a), b]);
    let bools = a.dtype() == DType::Bool
        || match b {
            Other::Tensor(b) => b.dtype() == DType::Bool,
            Other::Scalar(value) => matches!(value, Scalar::Bool(_)),
        };
    match (arithmetic, dtype) {
        (Arithmetic::Div, dtype) if !dtype.is_float() => Ok(DType::F32),
        // One bool operand is enough, as in PyTorch.
        (Arithmetic::Sub, _) if bools => Err(Error::dtype(
            "sub",
            "bools have no difference; use `ne` for exclusive or, or convert with `to` first",
        )),
        (_, dtype) => Ok(dtype),
    }
}

/// PyTorch refuses a fractional scale of integers, because it would be cut off silently.
fn check_alpha(arithmetic: Arithmetic, dtype: DType, alpha: Scalar) -> Result<()> {
    if matches!(alpha, Scalar::Float(_)) && !dtype.is_float() {
        let name = Binary::plain(arithmetic, Operand::Tensor).name();
        return Err(Error::dtype(
            name,
            format!("alpha {alpha} is a fraction, but the operands are {dtype}; use a whole alpha"),
        ));
    }
    Ok(())
}

/// The operation and its tensor inputs in one dtype.
fn prepare(
    arithmetic: Arithmetic,
    dtype: DType,
    a: &Tensor,
    b: Other<'_>,
    alpha: Scalar,
    site: Site,
) -> Result<(Binary, Tensor, Option<Tensor>)> {
    check_alpha(arithmetic, dtype, alpha)?;
    let a = a.to_dtype(dtype, site)?;
    Ok(match b {
        Other::Tensor(b) => {
            let b = b.beside(&a, site)?.to_dtype(dtype, site)?;
            (Binary { arithmetic, operand: Operand::Tensor, alpha }, a, Some(b))
        }
        Other::Scalar(value) => {
            let scaled = match (arithmetic, alpha) {
                (Arithmetic::Add | Arithmetic::Sub, alpha) => multiply(value, alpha),
                _ => value,
            };
            (Binary::plain(arithmetic, Operand::Right(scaled)), a, None)
        }
    })
}

fn multiply(value: Scalar, alpha: Scalar) -> Scalar {
    match (value, alpha) {
        (value, Scalar::Int(1)) => value,
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
            Scalar::Float(value.to_f64() * alpha.to_f64())
        }
        _ => Scalar::Int(value.to_i64().wrapping_mul(alpha.to_i64())),
    }
}

#[inline]
fn new(
    arithmetic: Arithmetic,
    a: &Tensor,
    b: Other<'_>,
    alpha: Scalar,
    site: Site,
) -> Result<Tensor> {
    // The usual case needs no conversions and no clones of handles.
    if let Other::Tensor(b) = b
        && a.dtype() == b.dtype()
        && a.device() == b.device()
        && a.dtype().is_float()
    {
        let op = Binary { arithmetic, operand: Operand::Tensor, alpha };
        return apply_one(&op, &[a, b], site);
    }
    converted(Binary { arithmetic, operand: Operand::Tensor, alpha }, a, b, site)
}

/// `asked` of operands of different dtypes or devices, or with a host number.
fn converted(asked: Binary, a: &Tensor, b: Other<'_>, site: Site) -> Result<Tensor> {
    let _named = enter_operation(asked.name());
    let Binary { arithmetic, alpha, .. } = asked;
    let moved = a.beside_other(b, site)?;
    let a = moved.as_ref().unwrap_or(a);
    let _named = enter_operation(Binary::plain(arithmetic, Operand::Tensor).name());
    let dtype = compute_dtype(arithmetic, a, b)?;
    let (op, a, b) = prepare(arithmetic, dtype, a, b, alpha, site)?;
    match b {
        Some(b) => apply_one(&op, &[&a, &b], site),
        None => apply_one(&op, &[&a], site),
    }
}

fn reversed(arithmetic: Arithmetic, x: &Tensor, number: Scalar, site: Site) -> Result<Tensor> {
    let op = Binary::plain(arithmetic, Operand::Left(number));
    let dtype = compute_dtype(arithmetic, x, Other::Scalar(number))?;
    let _named = enter_operation(op.name());
    apply_one(&op, &[&x.to_dtype(dtype, site)?], site)
}

fn in_place<'a>(
    arithmetic: Arithmetic,
    a: &'a Tensor,
    b: Other<'_>,
    alpha: Scalar,
    site: Site,
) -> Result<&'a Tensor> {
    let dtype = compute_dtype(arithmetic, a, b)?;
    let name = Binary::plain(arithmetic, Operand::Tensor).name();
    if dtype.class() > a.dtype().class() {
        return Err(Error::dtype(
            name,
            format!(
                "the result is {dtype} and cannot be stored in place in a tensor of {}; use the form without the \
                 underscore, or convert first",
                a.dtype()
            ),
        ));
    }
    let _named = enter_operation(name);
    let (op, computed, b) = prepare(arithmetic, dtype, a, b, alpha, site)?;
    let inputs: &[&Tensor] = match &b {
        Some(b) => &[&computed, b],
        None => &[&computed],
    };
    if dtype == a.dtype() {
        apply(&op, inputs, Dest::InPlace, site)?;
    } else {
        a.copy_from(&apply_one(&op, inputs, site)?, site)?;
    }
    Ok(a)
}

fn into(
    arithmetic: Arithmetic,
    a: &Tensor,
    b: Other<'_>,
    alpha: Scalar,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    let dtype = compute_dtype(arithmetic, a, b)?;
    let (op, a, b) = prepare(arithmetic, dtype, a, b, alpha, site)?;
    match b {
        Some(b) => apply(&op, &[&a, &b], Dest::Out(&[out]), site),
        None => apply(&op, &[&a], Dest::Out(&[out]), site),
    }
    .map(drop)
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<'b, T: Into<Other<'b>>> std::ops::$trait<T> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: T) -> Result<Tensor> {
                Tensor::$method(self, other)
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl std::ops::Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
