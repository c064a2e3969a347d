//! Power-average pooling: the p-norm of each window, made of means and powers.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::options::{DimList, options};
use super::pool::{AvgPoolOptions, MaxPoolOptions};
use crate::Tensor;
use crate::api::composed;

options! {
    /// How [`Tensor::lp_pool2d_with`] and its kin go over their input. One number stands for all
    /// dimensions.
    LpPoolOptions {
        /// From one window to the next; the kernel's size if empty.
        stride: DimList = DimList::default(),
        /// Whether windows may end past the input.
        ceil_mode: bool = false,
    }
}

/// The norm of each window by pooling functions of one rank.
fn lp_pool(
    (operation, rank): (&'static str, usize),
    (x, norm_type): (&Tensor, f64),
    kernel_size: &DimList,
    options: &LpPoolOptions,
    max_pool: impl Fn(&Tensor, MaxPoolOptions) -> Result<Tensor>,
    avg_pool: impl Fn(&Tensor, AvgPoolOptions) -> Result<Tensor>,
    site: Site,
) -> Result<Tensor> {
    if norm_type == 0.0 {
        let why = "norm_type must be a non-zero value, but got 0";
        return Err(Error::invalid_argument(why).in_operation(operation));
    }
    composed(operation, site, || {
        let (stride, ceil) = (options.stride.clone(), options.ceil_mode);
        if norm_type.is_infinite() {
            let options = MaxPoolOptions::new().stride(stride).ceil_mode(ceil);
            let size = x.abs()?;
            if norm_type > 0.0 {
                return max_pool(&size, options);
            }
            return max_pool(&size.neg()?, options)?.neg();
        }
        let elements: i64 = match kernel_size.as_slice() {
            [one] => one.pow(rank as u32),
            all => all.iter().product(),
        };
        let options = AvgPoolOptions::new().stride(stride).ceil_mode(ceil);
        let mean = avg_pool(&x.pow(norm_type)?, options)?;
        // The mean itself, with a gradient of 0 where it is 0.
        let mean = mean.sign()?.mul(&mean.abs()?.relu()?)?;
        mean.mul(elements)?.pow(1.0 / norm_type)
    })
}

/// The two forms.
macro_rules! lp_pool {
    ($(#[$doc:meta])* $name:ident, $with:ident, $max:ident, $avg:ident, $rank:literal) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, norm_type: f64, kernel_size: impl Into<DimList>) -> Result<Tensor> {
                self.$with(norm_type, kernel_size, LpPoolOptions::new())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with strides.")]
            #[track_caller]
            pub fn $with(
                &self,
                norm_type: f64,
                kernel_size: impl Into<DimList>,
                options: LpPoolOptions,
            ) -> Result<Tensor> {
                let (kernel, site) = (kernel_size.into(), Site::caller());
                lp_pool(
                    (stringify!($name), $rank),
                    (self, norm_type),
                    &kernel,
                    &options,
                    |x, options| x.$max(kernel.clone(), options),
                    |x, options| x.$avg(kernel.clone(), options),
                    site,
                )
            }
        }
    };
}

lp_pool!(
    /// The p-norm of each window of a signal [batch, channels, length], or of one signal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 4.0], &[1, 1, 2], Device::cpu())?;
    /// assert_eq!(x.lp_pool1d(2.0, 2)?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    lp_pool1d, lp_pool1d_with, max_pool1d_with, avg_pool1d_with, 1
);
lp_pool!(
    /// The p-norm of each window of an image [batch, channels, height, width], or of one image.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 2, 2], DType::F32)?;
    /// assert_eq!(x.lp_pool2d(2.0, 2)?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    lp_pool2d, lp_pool2d_with, max_pool2d_with, avg_pool2d_with, 2
);
lp_pool!(
    /// The p-norm of each window of a volume [batch, channels, depth, height, width], or of one
    /// volume.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 2, 2, 2], DType::F32)?;
    /// assert_eq!(x.lp_pool3d(1.0, 2)?.to_vec::<f32>()?, [8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    lp_pool3d, lp_pool3d_with, max_pool3d_with, avg_pool3d_with, 3
);
