//! Bounds as methods.

use plimsoll_core::{Error, Result, Scalar};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::operation::{OpInfo, Operation};
use crate::ops::clamp::{Bound, CLAMP, CLAMP_MAX, CLAMP_MIN, Clamp, no_bounds};
use crate::prepare::{apply, apply_one};
use crate::promotion::{Other, result_type};

/// A bound: a host number, a tensor, or none.
#[derive(Clone, Debug, Default)]
pub enum Limit {
    /// No bound.
    #[default]
    None,
    /// The same for all elements.
    Number(Scalar),
    /// One for each element; it is broadcast.
    Tensor(Tensor),
}

impl From<Option<Scalar>> for Limit {
    fn from(number: Option<Scalar>) -> Limit {
        number.map_or(Limit::None, Limit::Number)
    }
}

impl From<Option<&Tensor>> for Limit {
    fn from(tensor: Option<&Tensor>) -> Limit {
        tensor.map_or(Limit::None, |tensor| Limit::Tensor(tensor.clone()))
    }
}

impl From<&Tensor> for Limit {
    fn from(tensor: &Tensor) -> Limit {
        Limit::Tensor(tensor.clone())
    }
}

macro_rules! limit_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Limit {
            fn from(value: $type) -> Limit {
                Limit::Number(value.into())
            }
        }
    )*};
}

limit_from!(Scalar, f64, f32, i64, i32);

options! {
    /// The bounds of [`Tensor::clamp_with`].
    ClampOptions {
        /// The lower bound.
        min: Limit = Limit::None,
        /// The upper bound.
        max: Limit = Limit::None,
    }
}

impl Tensor {
    /// Each element between two host numbers; [`Tensor::clamp_with`] takes one of them, or tensors.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?;
    /// assert_eq!(x.clamp(1, 2)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn clamp(&self, min: impl Into<Scalar>, max: impl Into<Scalar>) -> Result<Tensor> {
        self.clamp_with(ClampOptions::new().min(min.into()).max(max.into()))
    }

    /// Each element between two bounds, of which one may be missing.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?;
    /// let low = Tensor::full(&[4], 2.0, DType::F32)?;
    /// let y = x.clamp_with(ClampOptions::new().min(&low))?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 2.0, 2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn clamp_with(&self, options: ClampOptions) -> Result<Tensor> {
        let (op, inputs) = bounded(&CLAMP, self, &options)?;
        apply_one(&op, &inputs, Site::caller())
    }

    /// [`Tensor::clamp_with`] in place.
    #[track_caller]
    pub fn clamp_with_(&self, options: ClampOptions) -> Result<&Tensor> {
        let (op, inputs) = bounded(&CLAMP, self, &options)?;
        apply(&op, &inputs, Dest::InPlace, Site::caller())?;
        Ok(self)
    }

    /// [`Tensor::clamp_with`] into `out`.
    #[track_caller]
    pub fn clamp_with_out(&self, options: ClampOptions, out: &Tensor) -> Result<()> {
        let (op, inputs) = bounded(&CLAMP, self, &options)?;
        check_target(&op, &inputs, out)?;
        apply(&op, &inputs, Dest::Out(&[out]), Site::caller()).map(drop)
    }
}

/// One bound: a new tensor, in place, and into a given one.
macro_rules! one_bound {
    ($(#[$doc:meta])* $name:ident, $in_place:ident, $into:ident => $info:path, $side:ident) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&self, bound: impl Into<Other<'a>>) -> Result<Tensor> {
                let options = ClampOptions::new().$side(limit(bound.into()));
                let (op, inputs) = bounded(&$info, self, &options)?;
                apply_one(&op, &inputs, Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
            #[track_caller]
            pub fn $in_place<'a>(&self, bound: impl Into<Other<'a>>) -> Result<&Tensor> {
                let options = ClampOptions::new().$side(limit(bound.into()));
                let (op, inputs) = bounded(&$info, self, &options)?;
                apply(&op, &inputs, Dest::InPlace, Site::caller())?;
                Ok(self)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
            #[track_caller]
            pub fn $into<'a>(&self, bound: impl Into<Other<'a>>, out: &Tensor) -> Result<()> {
                let options = ClampOptions::new().$side(limit(bound.into()));
                let (op, inputs) = bounded(&$info, self, &options)?;
                check_target(&op, &inputs, out)?;
                apply(&op, &inputs, Dest::Out(&[out]), Site::caller()).map(drop)
            }
        }
    };
}

one_bound! {
    /// Each element, or the bound where it is below.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.clamp_min(1)?.to_vec::<f32>()?, [1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    clamp_min, clamp_min_, clamp_min_out => CLAMP_MIN, min
}
one_bound! {
    /// Each element, or the bound where it is above.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.clamp_max(1)?.to_vec::<f32>()?, [0.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    clamp_max, clamp_max_, clamp_max_out => CLAMP_MAX, max
}

fn limit(bound: Other<'_>) -> Limit {
    match bound {
        Other::Tensor(tensor) => Limit::Tensor(tensor.clone()),
        Other::Scalar(number) => Limit::Number(number),
    }
}

/// Beside numbers PyTorch takes a target of the result's dtype only; beside tensors of any that it
/// can be cast to.
fn check_target(op: &Clamp, inputs: &[&Tensor], out: &Tensor) -> Result<()> {
    let [x] = inputs else { return Ok(()) };
    let dtype = match op.number() {
        Some(number) => result_type(&[Other::Tensor(x), Other::Scalar(number)]),
        None => x.dtype(),
    };
    if out.dtype() == dtype {
        return Ok(());
    }
    Err(Error::dtype(
        op.info.name,
        format!("the result is {dtype} and out= {}; give one of the result's dtype", out.dtype()),
    ))
}

/// The operation and its inputs.
fn bounded<'a>(
    info: &'static OpInfo,
    x: &'a Tensor,
    options: &'a ClampOptions,
) -> Result<(Clamp, SmallVec<[&'a Tensor; 3]>)> {
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec::smallvec![x];
    let mut bound = |limit: &'a Limit| match limit {
        Limit::None => Bound::None,
        Limit::Number(number) => Bound::Number(*number),
        Limit::Tensor(tensor) => {
            inputs.push(tensor);
            Bound::Input(inputs.len() - 1)
        }
    };
    let (low, high) = (bound(&options.min), bound(&options.max));
    if low == Bound::None && high == Bound::None {
        return Err(no_bounds(info.name));
    }
    Ok((Clamp { info, low, high }, inputs))
}
