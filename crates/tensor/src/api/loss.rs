//! Losses: how far a tensor is from its target.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::composed;
use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::operation::Operation;
use crate::ops::cross_entropy::{CrossEntropy, NllLoss};
use crate::ops::loss::{ElementLoss, Loss};
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::cross_entropy::CrossEntropyArgs;
use plimsoll_kernels::cpu::nll::NllArgs;
pub use plimsoll_kernels::cpu::nll::Reduction;

options! {
    /// How [`Tensor::mse_loss_with`] reduces.
    MseLossOptions {
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
    }
}
options! {
    /// How [`Tensor::l1_loss_with`] reduces.
    L1LossOptions {
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
    }
}
options! {
    /// How [`Tensor::smooth_l1_loss_with`] computes.
    SmoothL1LossOptions {
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
        /// Where the parabola becomes a line.
        beta: f64 = 1.0,
    }
}
options! {
    /// How [`Tensor::huber_loss_with`] computes.
    HuberLossOptions {
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
        /// Where the parabola becomes a line.
        delta: f64 = 1.0,
    }
}
options! {
    /// How [`Tensor::binary_cross_entropy_with`] computes.
    BinaryCrossEntropyOptions<'a> {
        /// Multiplies each element's loss.
        weight: Option<&'a Tensor> = None,
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
    }
}
options! {
    /// How [`Tensor::binary_cross_entropy_with_logits_with`] computes.
    BinaryCrossEntropyWithLogitsOptions<'a> {
        /// Multiplies each element's loss.
        weight: Option<&'a Tensor> = None,
        /// Multiplies the losses of positive targets.
        pos_weight: Option<&'a Tensor> = None,
        /// What becomes of the elements' losses.
        reduction: Reduction = Reduction::Mean,
    }
}
options! {
    /// How [`Tensor::nll_loss_with`] computes.
    NllLossOptions<'a> {
        /// One for each class; multiplies its losses.
        weight: Option<&'a Tensor> = None,
        /// What becomes of the rows' losses.
        reduction: Reduction = Reduction::Mean,
        /// Rows with this target count for nothing.
        ignore_index: i64 = -100,
    }
}
options! {
    /// How [`Tensor::cross_entropy_with`] computes.
    CrossEntropyOptions<'a> {
        /// One for each class; multiplies its losses.
        weight: Option<&'a Tensor> = None,
        /// What becomes of the rows' losses.
        reduction: Reduction = Reduction::Mean,
        /// Rows with this target count for nothing.
        ignore_index: i64 = -100,
        /// How much of each target is spread evenly over all classes.
        label_smoothing: f64 = 0.0,
    }
}

impl Tensor {
    /// The mean of the squared differences from `target`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.mse_loss(&x.zeros_like()?)?.item::<f32>()?, 8.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.mse_loss_with(target, MseLossOptions::new())
    }

    /// [`Tensor::mse_loss`], reduced as `options` say.
    #[track_caller]
    pub fn mse_loss_with(&self, target: &Tensor, options: MseLossOptions) -> Result<Tensor> {
        element_loss(self, target, Loss::Mse, options.reduction, Site::caller())
    }

    /// The mean size of the differences from `target`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, -4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.l1_loss(&x.zeros_like()?)?.item::<f32>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.l1_loss_with(target, L1LossOptions::new())
    }

    /// [`Tensor::l1_loss`], reduced as `options` say.
    #[track_caller]
    pub fn l1_loss_with(&self, target: &Tensor, options: L1LossOptions) -> Result<Tensor> {
        composed("l1_loss", Site::caller(), || self.sub(target)?.abs()?.reduced(options.reduction))
    }

    /// The mean size of the differences from `target`, of small ones half their squares.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.smooth_l1_loss(&x.zeros_like()?)?.item::<f32>()?, (0.125 + 3.5) / 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.smooth_l1_loss_with(target, SmoothL1LossOptions::new())
    }

    /// [`Tensor::smooth_l1_loss`] with another bound between small and large.
    #[track_caller]
    pub fn smooth_l1_loss_with(
        &self,
        target: &Tensor,
        options: SmoothL1LossOptions,
    ) -> Result<Tensor> {
        let SmoothL1LossOptions { reduction, beta } = options;
        if beta < 0.0 {
            return Err(Error::invalid_argument(format!(
                "beta must not be negative, and is {beta}"
            ))
            .in_operation("smooth_l1_loss"));
        }
        if beta == 0.0 {
            return self.l1_loss_with(target, L1LossOptions::new().reduction(reduction));
        }
        element_loss(self, target, Loss::SmoothL1(beta), reduction, Site::caller())
    }

    /// The mean of half the squared differences from `target`, of large ones a line.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.huber_loss(&x.zeros_like()?)?.item::<f32>()?, (0.125 + 3.5) / 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn huber_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.huber_loss_with(target, HuberLossOptions::new())
    }

    /// [`Tensor::huber_loss`] with another bound between small and large.
    #[track_caller]
    pub fn huber_loss_with(&self, target: &Tensor, options: HuberLossOptions) -> Result<Tensor> {
        let HuberLossOptions { reduction, delta } = options;
        if delta <= 0.0 {
            return Err(Error::invalid_argument(format!("delta must be above 0, and is {delta}"))
                .in_operation("huber_loss"));
        }
        element_loss(self, target, Loss::Huber(delta), reduction, Site::caller())
    }

    /// Minus the mean log-likelihood of `target`, from probabilities; no logarithm counts for less
    /// than -100.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.binary_cross_entropy(&x.ones_like()?)?.item::<f32>()?, 50.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.binary_cross_entropy_with(target, BinaryCrossEntropyOptions::new())
    }

    /// [`Tensor::binary_cross_entropy`] with weights.
    #[track_caller]
    pub fn binary_cross_entropy_with(
        &self,
        target: &Tensor,
        options: BinaryCrossEntropyOptions<'_>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        if target.dtype() != self.dtype() {
            let (target, own) = (target.dtype(), self.dtype());
            let why =
                format!("Found dtype {target} but expected {own}; convert the target with `to`");
            return Err(Error::dtype("binary_cross_entropy", why));
        }
        if options.weight.is_none() {
            let loss = Loss::BinaryCrossEntropy;
            return element_loss(self, target, loss, options.reduction, site);
        }
        composed("binary_cross_entropy", site, || {
            let losses = apply_one(&ElementLoss(Loss::BinaryCrossEntropy), &[self, target], site)?;
            losses.weighted(options.weight)?.reduced(options.reduction)
        })
    }

    /// [`Tensor::binary_cross_entropy`] of logits, exact where the probability would round to 0 or
    /// 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1000.0f32], &[1], Device::cpu())?;
    /// let loss = x.binary_cross_entropy_with_logits(&x.zeros_like()?)?;
    /// assert_eq!(loss.item::<f32>()?, 1000.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(&self, target: &Tensor) -> Result<Tensor> {
        let options = BinaryCrossEntropyWithLogitsOptions::new();
        self.binary_cross_entropy_with_logits_with(target, options)
    }

    /// [`Tensor::binary_cross_entropy_with_logits`] with weights.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits_with(
        &self,
        target: &Tensor,
        options: BinaryCrossEntropyWithLogitsOptions<'_>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        composed("binary_cross_entropy_with_logits", site, || {
            let op = ElementLoss(Loss::BinaryCrossEntropyWithLogits);
            let losses = match options.pos_weight {
                None => apply_one(&op, &[self, target], site)?,
                Some(pos_weight) => {
                    // The loss of a positive target is the part that the weight is for.
                    let positive = apply_one(&op, &[self, &target.ones_like()?], site)?;
                    let share = pos_weight.sub(1.0)?.mul(target)?.add(1.0)?;
                    target.neg()?.add(1.0)?.mul(self)?.add(&share.mul(&positive)?)?
                }
            };
            losses.weighted(options.weight)?.reduced(options.reduction)
        })
    }

    /// Minus the mean of the log-probabilities of the target classes; classes are dimension 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], &[2, 2], Device::cpu())?;
    /// let target = Tensor::from_slice(&[1i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.nll_loss(&target)?.item::<f32>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nll_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.nll_loss_with(target, NllLossOptions::new())
    }

    /// [`Tensor::nll_loss`] with weights of classes, or a target that counts for nothing.
    #[track_caller]
    pub fn nll_loss_with(&self, target: &Tensor, options: NllLossOptions<'_>) -> Result<Tensor> {
        let NllLossOptions { weight, reduction, ignore_index } = options;
        let op = NllLoss(NllArgs { reduction, ignore_index, weight: weight.is_some() });
        of_classes(&op, self, target, weight, Site::caller())
    }

    /// The mean cross entropy between scores and target classes, or target probabilities of the
    /// input's shape; classes are dimension 1. For backward it keeps two numbers a row, and no
    /// probabilities.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 4], DType::F64)?;
    /// let target = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
    /// assert!((x.cross_entropy(&target)?.item::<f64>()? - 4f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_with(target, CrossEntropyOptions::new())
    }

    /// [`Tensor::cross_entropy`] with weights of classes, a target that counts for nothing, or
    /// smoothed targets.
    #[track_caller]
    pub fn cross_entropy_with(
        &self,
        target: &Tensor,
        options: CrossEntropyOptions<'_>,
    ) -> Result<Tensor> {
        let smoothing = options.label_smoothing;
        if !(0.0..=1.0).contains(&smoothing) {
            return Err(Error::invalid_argument(format!(
                "label_smoothing must be from 0 to 1, and is {smoothing}"
            ))
            .in_operation("cross_entropy"));
        }
        let site = Site::caller();
        if self.shape() == target.shape() {
            let work = || probabilities(self, target, &options);
            return composed("cross_entropy", site, work);
        }
        let CrossEntropyOptions { weight, reduction, ignore_index, .. } = options;
        let nll = NllArgs { reduction, ignore_index, weight: weight.is_some() };
        let op = CrossEntropy(CrossEntropyArgs { nll, smoothing });
        of_classes(&op, self, target, weight, site)
    }

    fn reduced(&self, reduction: Reduction) -> Result<Tensor> {
        match reduction {
            Reduction::None => Ok(self.clone()),
            Reduction::Mean => self.mean(),
            Reduction::Sum => self.sum(),
        }
    }

    fn weighted(self, weight: Option<&Tensor>) -> Result<Tensor> {
        match weight {
            Some(weight) => self.mul(weight),
            None => Ok(self),
        }
    }
}

fn element_loss(
    x: &Tensor,
    target: &Tensor,
    loss: Loss,
    reduction: Reduction,
    site: Site,
) -> Result<Tensor> {
    let op = ElementLoss(loss);
    composed(op.info().name, site, || apply_one(&op, &[x, target], site)?.reduced(reduction))
}

fn of_classes(
    op: &dyn Operation,
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    site: Site,
) -> Result<Tensor> {
    let (x, target, weight) = composed(op.info().name, site, || {
        let weight = weight.map(Tensor::contiguous).transpose()?;
        // PyTorch takes classes as bytes as well, and as nothing else.
        let target = match target.dtype() {
            DType::U8 => target.to(DType::I64)?,
            DType::I64 => target.contiguous()?,
            other => {
                return Err(Error::dtype(
                    op.info().name,
                    format!("classes are int64 or uint8, and not {other}; convert with `long`"),
                ));
            }
        };
        Ok::<_, Error>((x.contiguous()?, target, weight))
    })?;
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec::smallvec![&x, &target];
    inputs.extend(&weight);
    Ok(first(apply(op, &inputs, Dest::New, site)?))
}

/// Cross entropy with a probability for each class.
fn probabilities(x: &Tensor, target: &Tensor, options: &CrossEntropyOptions<'_>) -> Result<Tensor> {
    if !target.dtype().is_float() {
        return Err(Error::dtype(
            "cross_entropy",
            format!(
                "target has the input's shape {:?}, so that it holds probabilities, but is {}; convert it with `to`",
                x.shape(),
                target.dtype()
            ),
        ));
    }
    let dim = usize::from(x.rank() > 1);
    let classes = x.shape().get(dim).copied().unwrap_or(1);
    let smoothing = options.label_smoothing;
    let smoothed = match smoothing > 0.0 {
        true => target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?,
        false => target.clone(),
    };
    let mut product = x.log_softmax(dim as i64)?.mul(&smoothed)?;
    if let Some(weight) = options.weight {
        if weight.shape() != [classes] {
            return Err(Error::shape(
                "cross_entropy",
                format!(
                    "the weight needs one element a class, {classes}, and has {:?}",
                    weight.shape()
                ),
            ));
        }
        let mut sizes: SmallVec<[i64; 5]> = smallvec::smallvec![1; x.rank()];
        sizes[dim] = -1;
        product = product.mul(&weight.view(&sizes[..])?)?;
    }
    match options.reduction {
        Reduction::None => product.sum_over(&[dim as i64], false)?.neg(),
        Reduction::Sum => product.sum()?.neg(),
        Reduction::Mean => product.sum()?.neg()?.div(x.numel() as f64 / classes as f64),
    }
}
