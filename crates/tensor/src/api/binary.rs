//! Arithmetic methods of two operands, and the operators. Operands are broadcast and promoted as in
//! PyTorch; the second may be a host number.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::binary::{self, Binary, BinaryRow, Second, check_power};
use crate::prepare::{apply, apply_one};
use crate::promotion::Other;

options! {
    /// How [`Tensor::add_with`] and [`Tensor::sub_with`] scale their second operand.
    AddOptions {
        /// Multiplies the second operand.
        alpha: Scalar = Scalar::Int(1),
    }
}

options! {
    /// How [`Tensor::div_with`] divides.
    DivOptions {
        /// Whether and how the quotient is rounded.
        rounding_mode: Option<RoundingMode> = None,
    }
}

/// How a quotient is made whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundingMode {
    /// Toward zero, as C divides integers.
    Trunc,
    /// Down, as Python's `//`.
    Floor,
}

impl std::str::FromStr for RoundingMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<RoundingMode> {
        match word {
            "trunc" => Ok(RoundingMode::Trunc),
            "floor" => Ok(RoundingMode::Floor),
            _ => Err(Error::invalid_argument(format!(
                "rounding_mode is \"trunc\" or \"floor\", or not given, and not {word:?}"
            ))
            .in_operation("div")),
        }
    }
}

/// The forms of one operation: a new tensor, in place (where there is such a form), and into a
/// given one.
macro_rules! binary {
    ($(#[$doc:meta])* $name:ident, $in_place:ident, $into:ident => $row:path) => {
        binary!($(#[$doc])* $name, $into => $row);

        impl Tensor {
            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
            #[track_caller]
            pub fn $in_place<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
                in_place(&$row, self, other.into(), Scalar::Int(1), Site::caller())
            }
        }
    };
    ($(#[$doc:meta])* $name:ident, $into:ident => $row:path) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
                new(&$row, self, other.into(), Scalar::Int(1), Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
            #[track_caller]
            pub fn $into<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
                into(&$row, self, other.into(), Scalar::Int(1), out, Site::caller())
            }
        }
    };
}

binary! {
    /// The sum of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.add(&x)?.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// assert_eq!(x.add(0.5)?.to_vec::<f32>()?, [0.5, 1.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    add, add_, add_out => binary::ADD
}
binary! {
    /// The difference of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// assert_eq!(x.sub(1)?.to_vec::<i64>()?, [-1, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    sub, sub_, sub_out => binary::SUB
}
binary! {
    /// The product of both operands, element by element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.mul(&x)?.to_vec::<f32>()?, [0.0, 1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    mul, mul_, mul_out => binary::MUL
}
binary! {
    /// The true quotient of both operands; integers give float32. [`Tensor::div_with`] rounds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::I64)?;
    /// assert_eq!(x.div(2)?.to_vec::<f32>()?, [0.5, 1.0, 1.5]);
    /// # Ok::<(), Error>(())
    /// ```
    div, div_, div_out => binary::DIV
}
binary! {
    /// The larger of both operands, element by element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.maximum(1.0)?.to_vec::<f32>()?, [1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    maximum, maximum_out => binary::MAXIMUM
}
binary! {
    /// The smaller of both operands, element by element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.minimum(1.0)?.to_vec::<f32>()?, [0.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    minimum, minimum_out => binary::MINIMUM
}
binary! {
    /// Each element to the power of `exponent`; integers to a fraction give float32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::I64)?;
    /// assert_eq!(x.pow(2)?.to_vec::<i64>()?, [1, 4, 9]);
    /// assert_eq!(x.pow(&x)?.to_vec::<i64>()?, [1, 4, 27]);
    /// assert_eq!(x.pow(-1.0)?.to_vec::<f32>()?, [1.0, 0.5, 1.0 / 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pow, pow_, pow_out => binary::POW
}

impl Tensor {
    /// [`Tensor::add`] with the second operand scaled: `self + alpha * other`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// let y = x.add_with(&x, AddOptions::new().alpha(2.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn add_with<'a>(&self, other: impl Into<Other<'a>>, options: AddOptions) -> Result<Tensor> {
        new(&binary::ADD, self, other.into(), options.alpha, Site::caller())
    }

    /// [`Tensor::add_with`] in place.
    #[track_caller]
    pub fn add_with_<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: AddOptions,
    ) -> Result<&Tensor> {
        in_place(&binary::ADD, self, other.into(), options.alpha, Site::caller())
    }

    /// [`Tensor::add_with`] into `out`.
    #[track_caller]
    pub fn add_with_out<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: AddOptions,
        out: &Tensor,
    ) -> Result<()> {
        into(&binary::ADD, self, other.into(), options.alpha, out, Site::caller())
    }

    /// [`Tensor::sub`] with the second operand scaled: `self - alpha * other`.
    #[track_caller]
    pub fn sub_with<'a>(&self, other: impl Into<Other<'a>>, options: AddOptions) -> Result<Tensor> {
        new(&binary::SUB, self, other.into(), options.alpha, Site::caller())
    }

    /// [`Tensor::sub_with`] in place: a step of gradient descent.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (weight, grad) = (Tensor::ones(&[2], DType::F32)?, Tensor::ones(&[2], DType::F32)?);
    /// weight.sub_with_(&grad, AddOptions::new().alpha(0.25))?;
    /// assert_eq!(weight.to_vec::<f32>()?, [0.75, 0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sub_with_<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: AddOptions,
    ) -> Result<&Tensor> {
        in_place(&binary::SUB, self, other.into(), options.alpha, Site::caller())
    }

    /// [`Tensor::sub_with`] into `out`.
    #[track_caller]
    pub fn sub_with_out<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: AddOptions,
        out: &Tensor,
    ) -> Result<()> {
        into(&binary::SUB, self, other.into(), options.alpha, out, Site::caller())
    }

    /// [`Tensor::div`], rounded to whole numbers where the options say so.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-7i64, 7], &[2], Device::cpu())?;
    /// let down = DivOptions::new().rounding_mode(RoundingMode::Floor);
    /// assert_eq!(x.div_with(2, down)?.to_vec::<i64>()?, [-4, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn div_with<'a>(&self, other: impl Into<Other<'a>>, options: DivOptions) -> Result<Tensor> {
        new(division(options), self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::div_with`] in place.
    #[track_caller]
    pub fn div_with_<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: DivOptions,
    ) -> Result<&Tensor> {
        in_place(division(options), self, other.into(), Scalar::Int(1), Site::caller())
    }

    /// [`Tensor::div_with`] into `out`.
    #[track_caller]
    pub fn div_with_out<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: DivOptions,
        out: &Tensor,
    ) -> Result<()> {
        into(division(options), self, other.into(), Scalar::Int(1), out, Site::caller())
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
        let number = number.into();
        check_difference(self, Other::Scalar(number))?;
        reversed(&binary::SUB, self, number, Site::caller())
    }

    /// The number divided by each element: `2 / x`.
    #[track_caller]
    pub fn rdiv(&self, number: impl Into<Scalar>) -> Result<Tensor> {
        reversed(&binary::DIV, self, number.into(), Site::caller())
    }

    /// The number to the power of each element: `2 ** x`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.rpow(2)?.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rpow(&self, base: impl Into<Scalar>) -> Result<Tensor> {
        reversed(&binary::POW, self, base.into(), Site::caller())
    }
}

fn division(options: DivOptions) -> &'static BinaryRow {
    match options.rounding_mode {
        None => &binary::DIV,
        Some(RoundingMode::Trunc) => &binary::DIV_TRUNC,
        Some(RoundingMode::Floor) => &binary::DIV_FLOOR,
    }
}

/// The operation on a tensor and a second operand.
fn operation(row: &'static BinaryRow, a: &Tensor, b: Other<'_>, alpha: Scalar) -> Result<Binary> {
    if std::ptr::eq(row, &binary::SUB) {
        check_difference(a, b)?;
    }
    let Other::Scalar(number) = b else {
        return Ok(Binary { row, second: Second::Tensor, alpha });
    };
    if std::ptr::eq(row, &binary::POW) {
        check_power(a.dtype(), number)?;
    }
    // A number is scaled here and now.
    Ok(Binary::of(row, Second::Right(multiply(number, alpha))))
}

/// One bool operand is enough to be refused, as in PyTorch.
fn check_difference(a: &Tensor, b: Other<'_>) -> Result<()> {
    let bool_b = match b {
        Other::Tensor(b) => b.dtype() == DType::Bool,
        Other::Scalar(number) => matches!(number, Scalar::Bool(_)),
    };
    if a.dtype() == DType::Bool || bool_b {
        return Err(Error::dtype(
            "sub",
            "bools have no difference; use `ne` for exclusive or, or convert with `to` first",
        ));
    }
    Ok(())
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
    row: &'static BinaryRow,
    a: &Tensor,
    b: Other<'_>,
    alpha: Scalar,
    site: Site,
) -> Result<Tensor> {
    let op = operation(row, a, b, alpha)?;
    match b {
        Other::Tensor(b) => apply_one(&op, &[a, b], site),
        Other::Scalar(_) => apply_one(&op, &[a], site),
    }
}

fn reversed(row: &'static BinaryRow, x: &Tensor, number: Scalar, site: Site) -> Result<Tensor> {
    apply_one(&Binary::of(row, Second::Left(number)), &[x], site)
}

fn in_place<'a>(
    row: &'static BinaryRow,
    a: &'a Tensor,
    b: Other<'_>,
    alpha: Scalar,
    site: Site,
) -> Result<&'a Tensor> {
    let op = operation(row, a, b, alpha)?;
    match b {
        Other::Tensor(b) => apply(&op, &[a, b], Dest::InPlace, site),
        Other::Scalar(_) => apply(&op, &[a], Dest::InPlace, site),
    }?;
    Ok(a)
}

fn into(
    row: &'static BinaryRow,
    a: &Tensor,
    b: Other<'_>,
    alpha: Scalar,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    let op = operation(row, a, b, alpha)?;
    match b {
        Other::Tensor(b) => apply(&op, &[a, b], Dest::Out(&[out]), site),
        Other::Scalar(_) => apply(&op, &[a], Dest::Out(&[out]), site),
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
