//! What an entry of a function of two operands becomes: its row, its methods, and how they run.

use plimsoll_core::{Result, Scalar};
use plimsoll_memory::Site;

use super::{Binary, BinaryRow, Second};
use crate::Tensor;
use crate::dispatch::Dest;
use crate::prepare::{apply, apply_one};
use crate::promotion::Other;

/// Declares rows and methods, and the list of the rows. A fourth name is that of the method whose
/// first operand is the number. What an entry leaves out is as in [`BinaryRow::STEP`].
macro_rules! binary {
    ($(
        $(#[$doc:meta])*
        $name:ident, $in_place:ident, $into:ident $(, $reversed:ident)? => $row:ident: $kind:ident,
        [$($signature:literal,)*] {
            $($field:ident: $value:expr,)*
        }
    )*) => {
        $(
            pub(crate) static $row: $crate::ops::binary::BinaryRow = $crate::ops::binary::BinaryRow {
                info: $crate::operation::OpInfo {
                    name: stringify!($name),
                    signatures: &[$($signature),*],
                    ..$kind
                },
                $($field: $value,)*
                ..$crate::ops::binary::BinaryRow::STEP
            };

            impl $crate::Tensor {
                $(#[$doc])*
                #[track_caller]
                pub fn $name<'a>(
                    &self,
                    other: impl Into<$crate::Other<'a>>,
                ) -> plimsoll_core::Result<$crate::Tensor> {
                    let site = plimsoll_memory::Site::caller();
                    $crate::ops::binary::entry::new(&$row, self, other.into(), site)
                }

                #[doc = concat!("[`", stringify!($name), "`](crate::Tensor::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place<'a>(
                    &self,
                    other: impl Into<$crate::Other<'a>>,
                ) -> plimsoll_core::Result<&$crate::Tensor> {
                    let site = plimsoll_memory::Site::caller();
                    $crate::ops::binary::entry::in_place(&$row, self, other.into(), site)
                }

                #[doc = concat!("[`", stringify!($name), "`](crate::Tensor::", stringify!($name), ") into `out`.")]
                #[track_caller]
                pub fn $into<'a>(
                    &self,
                    other: impl Into<$crate::Other<'a>>,
                    out: &$crate::Tensor,
                ) -> plimsoll_core::Result<()> {
                    let site = plimsoll_memory::Site::caller();
                    $crate::ops::binary::entry::into(&$row, self, other.into(), out, site)
                }

                $(
                    #[doc = concat!(
                        "[`", stringify!($name), "`](crate::Tensor::", stringify!($name),
                        ") of a number and this tensor, in that order."
                    )]
                    #[track_caller]
                    pub fn $reversed(
                        &self,
                        number: impl Into<plimsoll_core::Scalar>,
                    ) -> plimsoll_core::Result<$crate::Tensor> {
                        let site = plimsoll_memory::Site::caller();
                        $crate::ops::binary::entry::reversed(&$row, self, number.into(), site)
                    }
                )?
            }
        )*

        pub(crate) static OPS: &[&$crate::operation::OpInfo] = &[$(&$row.info),*];
    };
}
pub(super) use binary;

/// Runs the operation of `row` on a tensor and a second operand.
pub(super) fn new(row: &'static BinaryRow, a: &Tensor, b: Other<'_>, site: Site) -> Result<Tensor> {
    match b {
        Other::Tensor(b) => apply_one(&Binary::of(row, Second::Tensor), &[a, b], site),
        Other::Scalar(number) => apply_one(&Binary::of(row, Second::Right(number)), &[a], site),
    }
}

/// Runs it with the number first.
pub(super) fn reversed(
    row: &'static BinaryRow,
    x: &Tensor,
    number: Scalar,
    site: Site,
) -> Result<Tensor> {
    apply_one(&Binary::of(row, Second::Left(number)), &[x], site)
}

/// Runs it over `a` itself. A result of another dtype is made apart and copied in.
pub(super) fn in_place<'a>(
    row: &'static BinaryRow,
    a: &'a Tensor,
    b: Other<'_>,
    site: Site,
) -> Result<&'a Tensor> {
    if row.result.is_some() {
        return a.copy_from(&new(row, a, b, site)?, site);
    }
    let op = |second| Binary::of(row, second);
    match b {
        Other::Tensor(b) => apply(&op(Second::Tensor), &[a, b], Dest::InPlace, site),
        Other::Scalar(number) => apply(&op(Second::Right(number)), &[a], Dest::InPlace, site),
    }?;
    Ok(a)
}

/// Runs it into `out`.
pub(super) fn into(
    row: &'static BinaryRow,
    a: &Tensor,
    b: Other<'_>,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    let op = |second| Binary::of(row, second);
    let dest = Dest::Out(&[out]);
    match b {
        Other::Tensor(b) => apply(&op(Second::Tensor), &[a, b], dest, site),
        Other::Scalar(number) => apply(&op(Second::Right(number)), &[a], dest, site),
    }
    .map(drop)
}
