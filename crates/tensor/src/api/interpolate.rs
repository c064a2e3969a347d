//! Resampling of spatial dimensions.

use plimsoll_core::{DType, Error, Result, sizes_from_i64};
use plimsoll_memory::Site;

use super::antialias::{self, Filter};
use super::interpolate_bytes::{Axis, resample};
use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::autocast::ListedCall;
use crate::ops::channels_last::in_order;
use crate::ops::interpolate::Interpolate;
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::interpolate::InterpolateArgs;
pub use plimsoll_kernels::cpu::interpolate::InterpolateMode;

options! {
    /// How [`Tensor::interpolate_with`] computes.
    InterpolateOptions<'a> {
        /// How places between pixels are filled.
        interpolate_mode: InterpolateMode = InterpolateMode::Nearest,
        /// Whether the outermost pixels' centres stay where they are.
        align_corners: bool = false,
        /// Output sizes over input sizes, where they say it more exactly than the sizes.
        scale_factor: Option<&'a [f64]> = None,
        /// Whether images that shrink are filtered, so that every pixel counts.
        antialias: bool = false,
    }
}

impl Tensor {
    /// This tensor, of [batch, channels, 1 to 3 spatial dimensions], with other spatial sizes; each
    /// place takes the nearest pixel.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[1, 1, 2], Device::cpu())?;
    /// assert_eq!(x.interpolate(&[4])?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn interpolate(&self, size: &[i64]) -> Result<Tensor> {
        self.interpolate_with(size, InterpolateOptions::new())
    }

    /// [`Tensor::interpolate`] in another way.
    #[track_caller]
    pub fn interpolate_with(
        &self,
        size: &[i64],
        options: InterpolateOptions<'_>,
    ) -> Result<Tensor> {
        let InterpolateOptions { interpolate_mode, align_corners, scale_factor, antialias } =
            options;
        // Means of areas are no resampling to PyTorch, but a pool.
        if interpolate_mode != InterpolateMode::Area
            && let Some(call) = ListedCall::enter("upsample", self.device().kind(), [self])?
        {
            return call.cast(self)?.interpolate_with(size, options);
        }
        let mut scales = [0.0; 3];
        if let Some(given) = scale_factor {
            if given.len() != size.len() || given.len() > 3 {
                return Err(Error::invalid_argument(format!(
                    "there are {} factors for {} sizes; give one each",
                    given.len(),
                    size.len()
                ))
                .in_operation("interpolate"));
            }
            scales[..given.len()].copy_from_slice(given);
        }
        let sizes = sizes_from_i64("interpolate", size)?;
        if matches!(interpolate_mode, InterpolateMode::Nearest | InterpolateMode::Linear) {
            // A dimension that keeps its size is copied, whatever the factor was.
            let own = self.shape().iter().skip(self.rank().saturating_sub(sizes.len()));
            for ((scale, size), own) in scales.iter_mut().zip(&sizes).zip(own) {
                *scale = if size == own { 0.0 } else { *scale };
            }
        }
        let weighs = matches!(interpolate_mode, InterpolateMode::Linear | InterpolateMode::Cubic);
        if self.dtype() == DType::U8 && weighs && sizes.len() == 2 {
            let axis = |scale: f64| Axis::new(interpolate_mode, align_corners, antialias, scale);
            let axes = [axis(scales[0]), axis(scales[1])];
            return composed("interpolate", Site::caller(), || resample(self, &sizes, &axes));
        }
        if antialias {
            if !weighs {
                return Err(Error::invalid_argument("antialias is of bilinear and bicubic images")
                    .in_operation("interpolate"));
            }
            let cubic = interpolate_mode == InterpolateMode::Cubic;
            let filters = [scales[0], scales[1]].map(|scale| Filter {
                cubic,
                align_corners,
                scale: (scale > 0.0).then_some(scale),
            });
            let work = || antialias::resample(self, &sizes, filters);
            return composed("interpolate", Site::caller(), work);
        }
        let args = InterpolateArgs { mode: interpolate_mode, align_corners, scales };
        apply_one(&Interpolate { args, sizes }, &[&in_order(self)?], Site::caller())
    }
}
