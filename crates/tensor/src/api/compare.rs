//! Comparisons, with a tensor or a host number; operands are broadcast and promoted first.

use plimsoll_core::Result;
use plimsoll_memory::{Site, enter_operation};

use super::options::Other;
use super::promotion::result_type;
use crate::Tensor;
use crate::dispatch::apply_one;
use crate::operation::Operation;
use crate::ops::compare::{Compare, Comparison};

impl Tensor {
    /// Where both operands are equal; NaN equals nothing.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.eq(1)?.to_bools()?, [false, true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn eq<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Eq, self, other.into(), Site::caller())
    }

    /// Where both operands differ.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.ne(1)?.to_bools()?, [true, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ne<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Ne, self, other.into(), Site::caller())
    }

    /// Where this tensor is smaller.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.lt(1)?.to_bools()?, [true, false, false]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lt<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Lt, self, other.into(), Site::caller())
    }

    /// Where this tensor is smaller or equal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.le(1)?.to_bools()?, [true, true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn le<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Le, self, other.into(), Site::caller())
    }

    /// Where this tensor is larger.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.gt(1)?.to_bools()?, [false, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gt<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Gt, self, other.into(), Site::caller())
    }

    /// Where this tensor is larger or equal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.ge(1)?.to_bools()?, [false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ge<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        compare(Comparison::Ge, self, other.into(), Site::caller())
    }
}

fn compare(comparison: Comparison, a: &Tensor, b: Other<'_>, site: Site) -> Result<Tensor> {
    let _named = enter_operation(Compare { comparison, number: None }.info().name);
    let dtype = result_type(&[Other::Tensor(a), b]);
    match b {
        Other::Scalar(value) => {
            let op = Compare { comparison, number: Some(value) };
            apply_one(&op, &[&a.to_dtype(dtype, site)?], site)
        }
        Other::Tensor(b) => {
            let moved = a.beside_other(Other::Tensor(b), site)?;
            let a = moved.as_ref().unwrap_or(a).to_dtype(dtype, site)?;
            let b = b.beside(&a, site)?.to_dtype(dtype, site)?;
            apply_one(&Compare { comparison, number: None }, &[&a, &b], site)
        }
    }
}
