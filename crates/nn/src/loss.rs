//! Losses between elements or classes and their targets. Those that ask for a margin:
//! `margin_loss.rs`.

use std::f64::consts::TAU;

use plimsoll_tensor::{
    BinaryCrossEntropyOptions, BinaryCrossEntropyWithLogitsOptions, CrossEntropyOptions,
    CtcLossOptions, Error, HuberLossOptions, L1LossOptions, MseLossOptions, NllLossOptions,
    Reduction, Result, SmoothL1LossOptions, Tensor,
};

use crate::Buffer;
use crate::distance::raised;
use crate::stateless::layers;

/// The elements of a loss as they are asked for.
pub(crate) fn reduced(loss: &Tensor, reduction: Reduction) -> Result<Tensor> {
    match reduction {
        Reduction::None => Ok(loss.clone()),
        Reduction::Mean => loss.mean(),
        Reduction::Sum => loss.sum(),
    }
}

fn tensor(buffer: &Option<Buffer>) -> Option<Tensor> {
    buffer.as_ref().map(Buffer::tensor)
}

layers! {
    /// The squared differences.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, MSELoss};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let (x, y) = (Tensor::ones(&[4], DType::F32)?, Tensor::zeros(&[4], DType::F32)?);
    /// assert_eq!(MSELoss::new().call((&x, &y))?.item::<f32>()?, 1.0);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    MSELoss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        input.mse_loss_with(target, MseLossOptions::new().reduction(this.reduction))
    }

    /// The sizes of the differences.
    L1Loss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        input.l1_loss_with(target, L1LossOptions::new().reduction(this.reduction))
    }

    /// The sizes of the differences; below `beta` a parabola.
    SmoothL1Loss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
        /// Where the parabola ends.
        beta: f64 = 1.0,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let options = SmoothL1LossOptions::new().reduction(this.reduction).beta(this.beta);
        input.smooth_l1_loss_with(target, options)
    }

    /// Half the squared differences; above `delta` a line.
    HuberLoss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
        /// Where the line begins.
        delta: f64 = 1.0,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let options = HuberLossOptions::new().reduction(this.reduction).delta(this.delta);
        input.huber_loss_with(target, options)
    }

    /// Minus the log-likelihood of the targets, from probabilities.
    BCELoss() {
        /// A factor of each element.
        weight: Option<Buffer> = None,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let weight = tensor(&this.weight);
        let options =
            BinaryCrossEntropyOptions::new().weight(weight.as_ref()).reduction(this.reduction);
        input.binary_cross_entropy_with(target, options)
    }

    /// Minus the log-likelihood of the targets, from logits.
    BCEWithLogitsLoss() {
        /// A factor of each element.
        weight: Option<Buffer> = None,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
        /// A factor of the positive targets of each class.
        pos_weight: Option<Buffer> = None,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let (weight, pos_weight) = (tensor(&this.weight), tensor(&this.pos_weight));
        let options = BinaryCrossEntropyWithLogitsOptions::new()
            .weight(weight.as_ref())
            .pos_weight(pos_weight.as_ref())
            .reduction(this.reduction);
        input.binary_cross_entropy_with_logits_with(target, options)
    }

    /// Minus the log-probabilities of the target classes.
    NLLLoss() {
        /// A factor of each class.
        weight: Option<Buffer> = None,
        /// The class that counts for nothing.
        ignore_index: i64 = -100,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let weight = tensor(&this.weight);
        let options = NllLossOptions::new()
            .weight(weight.as_ref())
            .reduction(this.reduction)
            .ignore_index(this.ignore_index);
        input.nll_loss_with(target, options)
    }

    /// The cross entropy between scores and target classes or probabilities.
    ///
    /// ```
    /// use plimsoll_nn::{CrossEntropyLoss, Forward};
    /// use plimsoll_tensor::{DType, Device, Tensor};
    /// let scores = Tensor::zeros(&[2, 4], DType::F32)?;
    /// let classes = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
    /// let loss = CrossEntropyLoss::new().call((&scores, &classes))?.item::<f32>()?;
    /// assert!((loss - 4.0f32.ln()).abs() < 1e-6);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    CrossEntropyLoss() {
        /// A factor of each class.
        weight: Option<Buffer> = None,
        /// The class that counts for nothing.
        ignore_index: i64 = -100,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
        /// How much of the target is spread over all classes.
        label_smoothing: f64 = 0.0,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let weight = tensor(&this.weight);
        let options = CrossEntropyOptions::new()
            .weight(weight.as_ref())
            .reduction(this.reduction)
            .ignore_index(this.ignore_index)
            .label_smoothing(this.label_smoothing);
        input.cross_entropy_with(target, options)
    }

    /// The Kullback-Leibler divergence of log-probabilities from target probabilities.
    KLDivLoss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
        /// Whether the sum is divided by the batch: PyTorch's `reduction="batchmean"`.
        batchmean: bool = false,
        /// Whether targets are log-probabilities too.
        log_target: bool = false,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let loss = if this.log_target {
            target.exp()?.mul(&target.sub(input)?)?
        } else {
            // 0 times the logarithm of 0 counts for nothing.
            let entropy = target.mul(&target.log()?)?.masked_fill(&target.eq(0.0)?, 0.0)?;
            entropy.sub(&target.mul(input)?)?
        };
        if this.batchmean {
            let batch = input.shape().first().copied().unwrap_or(1);
            return loss.sum()?.div(batch as f64);
        }
        reduced(&loss, this.reduction)
    }

    /// Minus the log-likelihood of counts, without the terms that only the targets decide unless
    /// `full`.
    PoissonNLLLoss() {
        /// Whether the input is the logarithm of the rate.
        log_input: bool = true,
        /// Whether Stirling's approximation of the rest is added.
        full: bool = false,
        /// Keeps the rate away from 0.
        eps: f64 = 1e-8,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let mut loss = if this.log_input {
            input.exp()?.sub(&target.mul(input)?)?
        } else {
            input.sub(&target.mul(&input.add(this.eps)?.log()?)?)?
        };
        if this.full {
            let stirling = target
                .mul(&target.log()?)?
                .sub(target)?
                .add(&target.mul(TAU)?.log()?.mul(0.5)?)?;
            loss = loss.add(&stirling.masked_fill(&target.le(1.0)?, 0.0)?)?;
        }
        reduced(&loss, this.reduction)
    }

    /// Minus the log-likelihood of targets under normal distributions of given variances.
    GaussianNLLLoss() {
        /// Whether the constant term is added.
        full: bool = false,
        /// The least variance.
        eps: f64 = 1e-6,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target, var) = (&Tensor, &Tensor, &Tensor)) -> Tensor {
        let lead = input.shape().split_last().map_or(&[][..], |(_, lead)| lead);
        let var = if var.shape() != input.shape() && var.shape() == lead {
            var.unsqueeze(-1)?
        } else {
            var.clone()
        };
        if !var.device().is_dry() && var.detach().lt(0.0)?.any()?.to_scalar()?.to_f64() != 0.0 {
            return Err(Error::invalid_argument("var has negative entry/entries")
                .in_operation("GaussianNLLLoss"));
        }
        let var = raised(&var, this.eps)?;
        let distance = input.sub(target)?;
        let mut loss = var.log()?.add(&distance.mul(&distance)?.div(&var)?)?.mul(0.5)?;
        if this.full {
            loss = loss.add(0.5 * TAU.ln())?;
        }
        reduced(&loss, this.reduction)
    }

    /// Minus the log-likelihood of target sequences under all their alignments.
    CTCLoss() {
        /// The class that stands for nothing.
        blank: i64 = 0,
        /// What becomes of the sequences' losses.
        reduction: Reduction = Reduction::Mean,
        /// Whether targets that no alignment fits count for nothing.
        zero_infinity: bool = false,
    }
    prints(_of) "";
    computes(this, (log_probs, targets, inputs, lengths) = (&Tensor, &Tensor, Lengths<'_>, Lengths<'_>)) -> Tensor {
        let options = CtcLossOptions::new()
            .blank(this.blank)
            .reduction(this.reduction)
            .zero_infinity(this.zero_infinity);
        log_probs.ctc_loss_with(targets, inputs.0, lengths.0, options)
    }
}

/// How long each sequence of a batch is.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a>(
    /// One number for each.
    pub &'a [i64],
);

impl crate::Values for Lengths<'_> {}
