//! Connectionist temporal classification.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Site, enter_operation};

use super::loss::Reduction;
use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::ops::ctc::CtcLoss;
use crate::prepare::apply;

const NAME: &str = "ctc_loss";

options! {
    /// How [`Tensor::ctc_loss_with`] computes.
    CtcLossOptions {
        /// The class that stands for no label.
        blank: i64 = 0,
        /// What becomes of the sequences' losses; a mean divides each by its number of labels.
        reduction: Reduction = Reduction::Mean,
        /// Whether sequences that cannot be spread over their steps count for nothing.
        zero_infinity: bool = false,
    }
}

impl Tensor {
    /// Minus the log-likelihood of sequences of labels from log-probabilities of shape [steps,
    /// sequences, classes], over all ways to spread the labels over time; targets are a row a
    /// sequence, or one after another.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 1, 2], DType::F64)?.log_softmax(2)?;
    /// let target = Tensor::from_slice(&[1i64], &[1, 1], Device::cpu())?;
    /// // Three of the four paths through two steps read "1".
    /// let loss = x.ctc_loss(&target, &[2], &[1])?.item::<f64>()?;
    /// assert!((loss + 0.75f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ctc_loss(
        &self,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
    ) -> Result<Tensor> {
        self.ctc_loss_with(targets, input_lengths, target_lengths, CtcLossOptions::new())
    }

    /// [`Tensor::ctc_loss`] with another blank or reduction.
    #[track_caller]
    pub fn ctc_loss_with(
        &self,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        options: CtcLossOptions,
    ) -> Result<Tensor> {
        let site = Site::caller();
        let _named = enter_operation(NAME);
        let single = self.rank() == 2;
        let x = if single { self.unsqueeze(1)? } else { self.clone() };
        let op = checked(&x, targets, input_lengths, target_lengths, &options)?;
        let lengths: Vec<f64> = op.target_lengths.iter().map(|&len| len.max(1) as f64).collect();
        let inputs = [&x.contiguous()?, &targets.contiguous()?];
        let mut losses = first(apply(&op, &inputs, Dest::New, site)?);
        if options.zero_infinity {
            losses = Tensor::where_(&losses.eq(f64::INFINITY)?, 0.0, &losses)?;
        }
        match options.reduction {
            Reduction::None if single => losses.view([].as_slice()),
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum(),
            Reduction::Mean => {
                let lengths = Tensor::from_slice(&lengths, &[lengths.len() as i64], self.device())?;
                losses.div(&lengths.to(self.dtype())?)?.mean()
            }
        }
    }
}

/// The operation, after looking at the lengths.
fn checked(
    x: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    options: &CtcLossOptions,
) -> Result<CtcLoss> {
    let wrong = |what: String| Err(Error::invalid_argument(what).in_operation(NAME));
    let &[steps, sequences, classes] = x.shape() else {
        return wrong(format!(
            "log-probabilities need the shape [steps, sequences, classes], and have {:?}",
            x.shape()
        ));
    };
    let Some(blank) = usize::try_from(options.blank).ok().filter(|&blank| blank < classes) else {
        return wrong(format!("the blank {} is none of the {classes} classes", options.blank));
    };
    if input_lengths.len() != sequences || target_lengths.len() != sequences {
        return wrong(format!(
            "there are {sequences} sequences, but {} input lengths and {} target lengths",
            input_lengths.len(),
            target_lengths.len()
        ));
    }
    let read = |lengths: &[i64], most: usize, what: &str| -> Result<Vec<usize>> {
        let read = |&length: &i64| match usize::try_from(length) {
            Ok(length) if length <= most => Ok(length),
            _ => Err(Error::invalid_argument(format!(
                "the {what} length {length} is not between 0 and {most}"
            ))
            .in_operation(NAME)),
        };
        lengths.iter().map(read).collect()
    };
    let (rows, width) = match *targets.shape() {
        [rows, width] => (Some(rows), width),
        [all] => (None, all),
        ref other => return wrong(format!("targets need 1 or 2 dimensions, and have {other:?}")),
    };
    let input_lengths = read(input_lengths, steps, "input")?;
    let target_lengths = read(target_lengths, width, "target")?;
    let target_starts: Vec<usize> = match rows {
        Some(_) => (0..sequences).map(|sequence| sequence * width).collect(),
        None => target_lengths
            .iter()
            .scan(0, |sum, &length| Some(std::mem::replace(sum, *sum + length)))
            .collect(),
    };
    let together: usize = target_lengths.iter().sum();
    if rows.is_some_and(|rows| rows != sequences) || (rows.is_none() && together > width) {
        return wrong(format!(
            "targets of shape {:?} do not hold {sequences} sequences of lengths {target_lengths:?}",
            targets.shape()
        ));
    }
    let zero_infinity = options.zero_infinity;
    Ok(CtcLoss { input_lengths, target_lengths, target_starts, blank, zero_infinity })
}
