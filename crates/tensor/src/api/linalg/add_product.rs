//! Products that are added to a tensor, without memory for the product itself.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::dispatch::Dest;
use crate::ops::linalg::add_product::{AddProduct, Form};
use crate::prepare::{apply, apply_one};

options! {
    /// What [`Tensor::addmm_with`] and its kin scale the tensor and the product by.
    ProductOptions {
        /// What the tensor is multiplied by; with 0 it is not read.
        beta: Scalar = Scalar::Int(1),
        /// What the product is multiplied by.
        alpha: Scalar = Scalar::Int(1),
    }
}

impl ProductOptions {
    fn operation(self, form: Form) -> AddProduct {
        AddProduct { form, beta: self.beta, alpha: self.alpha }
    }
}

/// The forms of one sum: new, with options, in place, into a given tensor.
macro_rules! add_products {
    ($(
        $(#[$doc:meta])*
        $name:ident, $with:ident, $in_place:ident, $into:ident => $form:expr;
    )*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self, left: &Tensor, right: &Tensor) -> Result<Tensor> {
                    let operation = ProductOptions::new().operation($form);
                    apply_one(&operation, &[self, left, right], Site::caller())
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] with factors.")]
                #[track_caller]
                pub fn $with(
                    &self,
                    left: &Tensor,
                    right: &Tensor,
                    options: ProductOptions,
                ) -> Result<Tensor> {
                    apply_one(&options.operation($form), &[self, left, right], Site::caller())
                }

                #[doc = concat!("[`Tensor::", stringify!($with), "`] in place.")]
                #[track_caller]
                pub fn $in_place(
                    &self,
                    left: &Tensor,
                    right: &Tensor,
                    options: ProductOptions,
                ) -> Result<&Tensor> {
                    let operation = options.operation($form);
                    apply(&operation, &[self, left, right], Dest::InPlace, Site::caller())?;
                    Ok(self)
                }

                #[doc = concat!("[`Tensor::", stringify!($with), "`] into `out`.")]
                #[track_caller]
                pub fn $into(
                    &self,
                    left: &Tensor,
                    right: &Tensor,
                    options: ProductOptions,
                    out: &Tensor,
                ) -> Result<()> {
                    let operation = options.operation($form);
                    let inputs = [self, left, right];
                    apply(&operation, &inputs, Dest::Out(&[out]), Site::caller()).map(drop)
                }
            )*
        }
    };
}

add_products! {
    /// The tensor plus the product of two matrices.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (bias, a) = (Tensor::ones(&[2], DType::F32)?, Tensor::eye(2, DType::F32)?);
    /// assert_eq!(bias.addmm(&a, &a)?.to_vec::<f32>()?, [2.0, 1.0, 1.0, 2.0]);
    /// let options = ProductOptions::new().beta(10).alpha(-1);
    /// assert_eq!(bias.addmm_with(&a, &a, options)?.to_vec::<f32>()?, [9.0, 10.0, 10.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    addmm, addmm_with, addmm_with_, addmm_with_out => Form::Addmm;

    /// The tensor plus the product of a matrix and a vector.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(v.addmv(&Tensor::eye(2, DType::F32)?, &v)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    addmv, addmv_with, addmv_with_, addmv_with_out => Form::Addmv;

    /// The tensor plus the sum of the products of two batches.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let batch = Tensor::ones(&[3, 1, 1], DType::F32)?;
    /// let sum = Tensor::zeros(&[1, 1], DType::F32)?.addbmm(&batch, &batch)?;
    /// assert_eq!(sum.to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    addbmm, addbmm_with, addbmm_with_, addbmm_with_out => Form::Addbmm;

    /// The tensor plus the products of two batches.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let batch = Tensor::ones(&[2, 1, 1], DType::F32)?;
    /// assert_eq!(batch.baddbmm(&batch, &batch)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    baddbmm, baddbmm_with, baddbmm_with_, baddbmm_with_out => Form::Baddbmm;
}

impl Tensor {
    /// The tensor plus the outer product of two vectors.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::arange(1, 3, 1, DType::F32)?;
    /// let sum = Tensor::ones(&[2, 2], DType::F32)?.addr(&v, &v)?;
    /// assert_eq!(sum.to_vec::<f32>()?, [2.0, 3.0, 3.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn addr(&self, vec1: &Tensor, vec2: &Tensor) -> Result<Tensor> {
        self.addr_with(vec1, vec2, ProductOptions::new())
    }

    /// [`Tensor::addr`] with factors.
    #[track_caller]
    pub fn addr_with(
        &self,
        vec1: &Tensor,
        vec2: &Tensor,
        options: ProductOptions,
    ) -> Result<Tensor> {
        const OP: &str = "addr";
        composed(OP, Site::caller(), || {
            for vector in [vec1, vec2] {
                if vector.rank() != 1 {
                    let why =
                        format!("the factor of shape {:?} should be a vector", vector.shape());
                    return Err(Error::shape(OP, why));
                }
            }
            let shape = [vec1.shape()[0], vec2.shape()[0]];
            self.layout().broadcast_to(&shape).map_err(|_| {
                let own = self.shape();
                let why = format!(
                    "a tensor of shape {own:?} cannot be added to a product of shape {shape:?}"
                );
                Error::shape(OP, why)
            })?;
            let dtype = [vec1, vec2].iter().fold(self.dtype(), |dtype, vector| {
                plimsoll_core::promote_dtypes(dtype, vector.dtype())
            });
            let ProductOptions { beta, alpha } = options;
            let refuse = |why: &str| Err(Error::invalid_argument(why).in_operation(OP));
            let fraction = |number: Scalar| matches!(number, Scalar::Float(_));
            if !dtype.is_float() && (fraction(alpha) || fraction(beta)) {
                return refuse("for whole factors alpha and beta must be whole numbers");
            }
            // Numbers of bools are bools, so that they promote nothing.
            let [beta, alpha] = [beta, alpha].map(|number| match dtype {
                DType::Bool => Scalar::Bool(number.to_f64() != 0.0),
                _ => number,
            });
            let is_one = |number: Scalar| number.to_f64() == 1.0;
            let scaled = if is_one(alpha) { vec1.clone() } else { vec1.mul(alpha)? };
            let product = scaled.unsqueeze(1)?.mul(vec2)?.to(dtype)?;
            if beta.to_f64() == 0.0 {
                return Ok(product);
            }
            let own = if is_one(beta) { self.clone() } else { self.mul(beta)? };
            product.add_(&own)?;
            Ok(product)
        })
    }
}
