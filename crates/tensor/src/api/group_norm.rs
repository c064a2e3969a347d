//! Group normalization.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::composed;
use super::nn::are_wider;
use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::ops::channels_last::in_order;
use crate::ops::group_norm::GroupNorm;
use crate::prepare::apply;
use plimsoll_kernels::cpu::group_norm::GroupNormArgs;

options! {
    /// How [`Tensor::group_norm_with`] goes on from the normalized elements.
    GroupNormOptions<'a> {
        /// Multiplies each channel.
        weight: Option<&'a Tensor> = None,
        /// Is added to each channel.
        bias: Option<&'a Tensor> = None,
        /// Keeps the variance away from 0.
        eps: f64 = 1e-5,
    }
}

impl Tensor {
    /// Mean 0 and variance 1 over each of `num_groups` groups of channels (dimension 1) of each
    /// sample.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 10.0, 30.0], &[1, 4], Device::cpu())?;
    /// let y = x.group_norm(2)?.to_vec::<f32>()?;
    /// assert!(y.iter().zip([-1.0, 1.0, -1.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-4));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn group_norm(&self, num_groups: i64) -> Result<Tensor> {
        self.group_norm_with(num_groups, GroupNormOptions::new())
    }

    /// [`Tensor::group_norm`], then times a weight, plus a bias.
    #[track_caller]
    pub fn group_norm_with(
        &self,
        num_groups: i64,
        options: GroupNormOptions<'_>,
    ) -> Result<Tensor> {
        let GroupNormOptions { weight, bias, eps } = options;
        let Ok(groups) = usize::try_from(num_groups) else {
            return Err(Error::invalid_argument(format!(
                "the number of groups must be above 0, and is {num_groups}"
            ))
            .in_operation("group_norm"));
        };
        if self.rank() > 2 && self.shape()[2..].contains(&0) {
            let why = format!("shape {:?} has no places within a channel", self.shape());
            return Err(Error::shape("group_norm", why));
        }
        if are_wider(self, [weight, bias]) {
            return composed("group_norm", Site::caller(), || {
                self.to(DType::F32)?.group_norm_with(num_groups, options)?.to(self.dtype())
            });
        }
        let op = GroupNorm {
            args: GroupNormArgs { groups, weight: weight.is_some(), bias: bias.is_some(), eps },
        };
        let site = Site::caller();
        let x = in_order(self)?;
        let weight = weight.map(Tensor::contiguous).transpose()?;
        let bias = bias.map(Tensor::contiguous).transpose()?;
        let inputs: SmallVec<[&Tensor; 3]> =
            std::iter::once(&x).chain(&weight).chain(&bias).collect();
        Ok(first(apply(&op, &inputs, Dest::New, site)?))
    }
}
