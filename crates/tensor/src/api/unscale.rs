//! Scaled gradients, as a scaler uses them: unscaling all at once, and the scale after a step.
//! Neither makes the host wait.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use crate::Tensor;
use crate::dispatch::{Dest, SharedMemory, check_mutated};
use crate::operation::Needs;
use crate::ops::unscale::{Unscale, UpdateScale};
use crate::prepare::apply;
use plimsoll_kernels::cpu::optim::UpdateScale as Numbers;

impl Tensor {
    /// Multiplies all gradients by `inv_scale`, one float32, in place and in one operation; where
    /// an element is infinite or NaN, `found_inf`, one float32, becomes 1. All are on one device.
    /// Gradients that share memory are gone over one after the other: one that is there twice is
    /// multiplied twice, as in PyTorch.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let grads = [Tensor::full(&[2], 8.0, DType::F32)?, Tensor::full(&[3], 4.0, DType::F16)?];
    /// let (found, inverse) = (Tensor::zeros(&[], DType::F32)?, Tensor::scalar(0.25, DType::F32)?);
    /// let all = [&grads[0], &grads[1]];
    /// Tensor::amp_foreach_non_finite_check_and_unscale_(&all, &found, &inverse)?;
    /// assert_eq!(grads[0].to_vec::<f32>()?, [2.0, 2.0]);
    /// assert_eq!((grads[1].to_f64_vec()?, found.item::<f32>()?), (vec![1.0; 3], 0.0));
    /// grads[1].fill_(f64::NAN)?;
    /// Tensor::amp_foreach_non_finite_check_and_unscale_(&all, &found, &inverse)?;
    /// assert_eq!(found.item::<f32>()?, 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn amp_foreach_non_finite_check_and_unscale_(
        grads: &[&Tensor],
        found_inf: &Tensor,
        inv_scale: &Tensor,
    ) -> Result<()> {
        const NAME: &str = "_amp_foreach_non_finite_check_and_unscale_";
        let site = Site::caller();
        for (what, number) in [("found_inf", found_inf), ("inv_scale", inv_scale)] {
            check_one(NAME, what, number, DType::F32)?;
        }
        if let Some(other) = grads.iter().find(|grad| !grad.dtype().is_float()) {
            let why = format!("gradients are floating-point numbers, not {}", other.dtype());
            return Err(Error::dtype(NAME, why));
        }
        if grads.is_empty() {
            return Ok(());
        }
        let written: SmallVec<[&Tensor; 16]> = grads.iter().copied().chain([found_inf]).collect();
        match apply(&Unscale, &[inv_scale], Dest::Mutating(&written), site) {
            Err(error) if error.detail::<SharedMemory>().is_some() => {
                // Nothing is written before all are known to go.
                for grad in grads {
                    check_mutated(NAME, &[inv_scale], &[grad, found_inf], Needs::NONE)?;
                }
                grads.iter().try_for_each(|grad| {
                    let written = [*grad, found_inf];
                    apply(&Unscale, &[inv_scale], Dest::Mutating(&written), site).map(drop)
                })
            }
            done => done.map(drop),
        }
    }

    /// The scale of gradients after a step: smaller if `found_inf` says that it was skipped, larger
    /// after `growth_interval` steps in a row that were not. `self` is one float32,
    /// `growth_tracker` one int32 that counts those steps.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (scale, found) = (Tensor::scalar(8.0, DType::F32)?, Tensor::zeros(&[], DType::F32)?);
    /// let tracker = Tensor::zeros(&[], DType::I32)?;
    /// for expected in [8.0, 16.0, 16.0, 32.0] {
    ///     scale.amp_update_scale_(&tracker, &found, 2.0, 0.5, 2)?;
    ///     assert_eq!(scale.item::<f32>()?, expected);
    /// }
    /// found.fill_(1.0)?;
    /// scale.amp_update_scale_(&tracker, &found, 2.0, 0.5, 2)?;
    /// assert_eq!(scale.item::<f32>()?, 16.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn amp_update_scale_(
        &self,
        growth_tracker: &Tensor,
        found_inf: &Tensor,
        growth_factor: f64,
        backoff_factor: f64,
        growth_interval: i32,
    ) -> Result<&Tensor> {
        const NAME: &str = "_amp_update_scale_";
        let site = Site::caller();
        check_one(NAME, "current_scale", self, DType::F32)?;
        check_one(NAME, "growth_tracker", growth_tracker, DType::I32)?;
        check_one(NAME, "found_inf", found_inf, DType::F32)?;
        let numbers = Numbers { growth_factor, backoff_factor, growth_interval };
        let written = [self, growth_tracker];
        apply(&UpdateScale(numbers), &[found_inf], Dest::Mutating(&written), site)?;
        Ok(self)
    }
}

/// Refuses what is not one number of a dtype.
fn check_one(name: &'static str, what: &str, number: &Tensor, dtype: DType) -> Result<()> {
    if number.numel() != 1 {
        let why =
            format!("{what} must be a 1-element tensor, not one of shape {:?}", number.shape());
        return Err(Error::shape(name, why));
    }
    if number.dtype() != dtype {
        let why = format!("{what} must be a {dtype} tensor, not one of {}", number.dtype());
        return Err(Error::dtype(name, why));
    }
    Ok(())
}
