//! Comparisons, with a tensor or a host number; operands are broadcast and promoted first.

use plimsoll_core::Result;
use plimsoll_memory::Site;

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::compare::{Compare, Comparison};
use crate::prepare::{apply, apply_one};
use crate::promotion::Other;

/// The forms of one comparison: a new tensor of bools, in place (as 0 and 1), and into a given one.
macro_rules! compare {
    ($(#[$doc:meta])* $name:ident, $in_place:ident, $into:ident => $comparison:path) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
                compare($comparison, self, other.into(), Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, as 0 and 1.")]
            #[track_caller]
            pub fn $in_place<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
                in_place($comparison, self, other.into(), Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
            #[track_caller]
            pub fn $into<'a>(&self, other: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
                into($comparison, self, other.into(), out, Site::caller())
            }
        }
    };
}

compare! {
    /// Where both operands are equal; NaN equals nothing.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.eq(1)?.to_bools()?, [false, true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    eq, eq_, eq_out => Comparison::Eq
}
compare! {
    /// Where both operands differ.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.ne(1)?.to_bools()?, [true, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    ne, ne_, ne_out => Comparison::Ne
}
compare! {
    /// Where this tensor is smaller.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.lt(1)?.to_bools()?, [true, false, false]);
    /// # Ok::<(), Error>(())
    /// ```
    lt, lt_, lt_out => Comparison::Lt
}
compare! {
    /// Where this tensor is smaller or equal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.le(1)?.to_bools()?, [true, true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    le, le_, le_out => Comparison::Le
}
compare! {
    /// Where this tensor is larger.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.gt(1)?.to_bools()?, [false, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    gt, gt_, gt_out => Comparison::Gt
}
compare! {
    /// Where this tensor is larger or equal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.ge(1)?.to_bools()?, [false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    ge, ge_, ge_out => Comparison::Ge
}

fn operation(comparison: Comparison, b: Other<'_>) -> Compare {
    let number = if let Other::Scalar(number) = b { Some(number) } else { None };
    Compare { comparison, number }
}

fn compare(comparison: Comparison, a: &Tensor, b: Other<'_>, site: Site) -> Result<Tensor> {
    let op = operation(comparison, b);
    match b {
        Other::Scalar(_) => apply_one(&op, &[a], site),
        Other::Tensor(b) => apply_one(&op, &[a, b], site),
    }
}

/// The result is bool, so it is made apart and copied in.
fn in_place<'a>(
    comparison: Comparison,
    a: &'a Tensor,
    b: Other<'_>,
    site: Site,
) -> Result<&'a Tensor> {
    a.copy_from(&compare(comparison, a, b, site)?, site)
}

fn into(comparison: Comparison, a: &Tensor, b: Other<'_>, out: &Tensor, site: Site) -> Result<()> {
    let op = operation(comparison, b);
    match b {
        Other::Scalar(_) => apply(&op, &[a], Dest::Out(&[out]), site),
        Other::Tensor(b) => apply(&op, &[a, b], Dest::Out(&[out]), site),
    }
    .map(drop)
}
