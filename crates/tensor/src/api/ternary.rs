//! Functions of three operands as methods.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::ops::pointwise::{self, NONE, Numbers, PointwiseRow};
use crate::ops::ternary::{ADDCDIV, ADDCMUL, LERP};
use crate::promotion::Other;

options! {
    /// How [`Tensor::addcmul_with`] and [`Tensor::addcdiv_with`] scale what they add.
    AddcmulOptions {
        /// Multiplies the product, or the quotient.
        value: Scalar = Scalar::Int(1),
    }
}

/// The forms of an operation that adds a product or a quotient of two others.
macro_rules! added {
    (
        $(#[$doc:meta])*
        $name:ident, $with:ident, $in_place:ident, $into:ident => $row:path
    ) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, tensor1: &Tensor, tensor2: &Tensor) -> Result<Tensor> {
                self.$with(tensor1, tensor2, AddcmulOptions::new())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] of a multiple.")]
            #[track_caller]
            pub fn $with(
                &self,
                tensor1: &Tensor,
                tensor2: &Tensor,
                options: AddcmulOptions,
            ) -> Result<Tensor> {
                let inputs = [self, tensor1, tensor2];
                pointwise::new(&$row, &inputs, scale(&$row, &inputs, options)?, Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($with), "`] in place.")]
            #[track_caller]
            pub fn $in_place(
                &self,
                tensor1: &Tensor,
                tensor2: &Tensor,
                options: AddcmulOptions,
            ) -> Result<&Tensor> {
                let inputs = [self, tensor1, tensor2];
                let numbers = scale(&$row, &inputs, options)?;
                pointwise::in_place(&$row, &inputs, numbers, Site::caller())?;
                Ok(self)
            }

            #[doc = concat!("[`Tensor::", stringify!($with), "`] into `out`.")]
            #[track_caller]
            pub fn $into(
                &self,
                tensor1: &Tensor,
                tensor2: &Tensor,
                options: AddcmulOptions,
                out: &Tensor,
            ) -> Result<()> {
                let inputs = [self, tensor1, tensor2];
                let numbers = scale(&$row, &inputs, options)?;
                pointwise::into(&$row, &inputs, numbers, out, Site::caller())
            }
        }
    };
}

added! {
    /// The sum of each element and the product of two others.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.addcmul(&x, &x)?.to_vec::<f32>()?, [0.0, 2.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    addcmul, addcmul_with, addcmul_with_, addcmul_with_out => ADDCMUL
}
added! {
    /// The sum of each element and the quotient of two others.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::F32)?;
    /// assert_eq!(x.addcdiv(&x, &x)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    addcdiv, addcdiv_with, addcdiv_with_, addcdiv_with_out => ADDCDIV
}

/// The scale as the row's number; integers take no fractions.
fn scale(row: &PointwiseRow, inputs: &[&Tensor], options: AddcmulOptions) -> Result<Numbers> {
    let whole = inputs.iter().all(|input| !input.dtype().is_float());
    if whole && matches!(options.value, Scalar::Float(value) if value.fract() != 0.0) {
        return Err(Error::dtype(
            row.info.name,
            format!("value {} is a fraction, but the operands are integers", options.value),
        ));
    }
    Ok([options.value.to_f64(), 0.0, 0.0])
}

impl Tensor {
    /// From each element toward `end` by a part of the way.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.lerp(&x.mul(3)?, 0.5)?.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lerp<'a>(&self, end: &Tensor, weight: impl Into<Other<'a>>) -> Result<Tensor> {
        let (inputs, numbers) = lerped(self, end, weight.into())?;
        pointwise::new(&LERP, &inputs, numbers, Site::caller())
    }

    /// [`Tensor::lerp`] in place.
    #[track_caller]
    pub fn lerp_<'a>(&self, end: &Tensor, weight: impl Into<Other<'a>>) -> Result<&Tensor> {
        let (inputs, numbers) = lerped(self, end, weight.into())?;
        pointwise::in_place(&LERP, &inputs, numbers, Site::caller())?;
        Ok(self)
    }

    /// [`Tensor::lerp`] into `out`.
    #[track_caller]
    pub fn lerp_out<'a>(
        &self,
        end: &Tensor,
        weight: impl Into<Other<'a>>,
        out: &Tensor,
    ) -> Result<()> {
        let (inputs, numbers) = lerped(self, end, weight.into())?;
        pointwise::into(&LERP, &inputs, numbers, out, Site::caller())
    }
}

type Lerped<'a> = (SmallVec<[&'a Tensor; 3]>, Numbers);

/// Inputs and number of an interpolation; its operands have one dtype, as in PyTorch.
fn lerped<'a>(start: &'a Tensor, end: &'a Tensor, weight: Other<'a>) -> Result<Lerped<'a>> {
    let same = |what: &str, dtype: DType| match dtype == start.dtype() {
        true => Ok(()),
        false => Err(Error::dtype(
            "lerp",
            format!("{what} is {dtype} and the start {}; convert one with `to`", start.dtype()),
        )),
    };
    same("the end", end.dtype())?;
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec::smallvec![start, end];
    match weight {
        Other::Scalar(number) => Ok((inputs, [number.to_f64(), 0.0, 0.0])),
        Other::Tensor(weight) => {
            same("the weight", weight.dtype())?;
            inputs.push(weight);
            Ok((inputs, NONE))
        }
    }
}
