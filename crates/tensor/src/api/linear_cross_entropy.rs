//! Cross entropy of a linear map's results.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::composed;
use super::loss::{CrossEntropyOptions, Reduction};
use super::options::options;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::has_linear_cross_entropy_of_halves as is_half_on_cuda;
use crate::dispatch::{Dest, first};
use crate::ops::linear_cross_entropy::LinearCrossEntropy;
use crate::prepare::apply;
use plimsoll_kernels::cpu::linear_cross_entropy::LinearCrossEntropyArgs;
use plimsoll_kernels::cpu::nll::NllArgs;

const NAME: &str = "linear_cross_entropy";

options! {
    /// How [`Tensor::linear_cross_entropy_with`] computes.
    LinearCrossEntropyOptions<'a> {
        /// Added to the scores.
        linear_bias: Option<&'a Tensor> = None,
        /// Weights of the classes.
        weight: Option<&'a Tensor> = None,
        /// What becomes of the rows' losses.
        reduction: Reduction = Reduction::Mean,
        /// Rows with this target count for nothing.
        ignore_index: i64 = -100,
        /// The part of a target that is spread over all classes.
        label_smoothing: f64 = 0.0,
        /// The dtype of the loss; the rows' own if none is given.
        loss_dtype: Option<DType> = None,
    }
}

impl Tensor {
    /// The mean cross entropy between target classes and the scores `self @ linear_weight.T`, for
    /// rows of this tensor. The scores never exist whole, and the gradients of a mean or a sum are
    /// made on the way forward. Halves are computed in float32; on CUDA the scores of bfloat16 are
    /// bfloat16, and all sums float32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F64)?;
    /// let weight = Tensor::zeros(&[4, 3], DType::F64)?;
    /// let target = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
    /// let loss = x.linear_cross_entropy(&weight, &target)?.item::<f64>()?;
    /// assert!((loss - 4f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linear_cross_entropy(&self, linear_weight: &Tensor, target: &Tensor) -> Result<Tensor> {
        self.linear_cross_entropy_with(linear_weight, target, LinearCrossEntropyOptions::new())
    }

    /// [`Tensor::linear_cross_entropy`] with a bias, weights of classes, another reduction, a
    /// target that counts for nothing, or smoothed targets.
    #[track_caller]
    pub fn linear_cross_entropy_with(
        &self,
        linear_weight: &Tensor,
        target: &Tensor,
        options: LinearCrossEntropyOptions<'_>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        composed(NAME, site, || {
            check(self, linear_weight, &options)?;
            let lead = &self.shape()[..self.rank() - 1];
            let is_matrix = linear_weight.rank() == 2 && target.shape() == lead;
            let is_half = matches!(self.dtype(), DType::F16 | DType::BF16);
            let is_on_cuda = self.device().is_cuda() && is_half_on_cuda(self.dtype());
            if is_half && !(is_matrix && is_on_cuda) {
                return widened(self, linear_weight, target, &options);
            }
            if !is_matrix {
                return whole(self, linear_weight, target, &options);
            }
            let (x, target) = match self.rank() {
                1 => (self.unsqueeze(0)?, target.unsqueeze(0)?),
                _ => (self.clone(), target.clone()),
            };
            let loss = in_blocks(&x, linear_weight, &target, &options, site)?;
            let loss = loss.to(options.loss_dtype.unwrap_or(self.dtype()))?;
            if self.rank() == 1 && options.reduction == Reduction::None {
                return loss.squeeze_with(0);
            }
            Ok(loss)
        })
    }
}

fn check(x: &Tensor, w: &Tensor, options: &LinearCrossEntropyOptions<'_>) -> Result<()> {
    let (rows, weight) = (x.shape(), w.shape());
    let wrong = |what: &str| {
        Err(Error::shape(
            NAME,
            format!("{what}: the input has the shape {rows:?}, the linear weight {weight:?}"),
        ))
    };
    if !(1..=2).contains(&rows.len()) {
        return wrong("the input needs one dimension, or two");
    }
    if weight.len() < 2 {
        return wrong("the linear weight needs two or more dimensions");
    }
    if rows.last() != weight.last() {
        return wrong("both need the same last dimension");
    }
    if weight.len() > 2 && rows.len() == 1 {
        return wrong("a linear weight of more than two dimensions needs a batch");
    }
    if let Some(bias) = options.linear_bias
        && bias.shape() != &weight[..weight.len() - 1]
    {
        return wrong(&format!("the bias has the shape {:?}, and not that", bias.shape()));
    }
    let smoothing = options.label_smoothing;
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::invalid_argument(format!(
            "label_smoothing must be from 0 to 1, and is {smoothing}"
        ))
        .in_operation(NAME));
    }
    Ok(())
}

/// A block of rows after another.
fn in_blocks(
    x: &Tensor,
    w: &Tensor,
    target: &Tensor,
    options: &LinearCrossEntropyOptions<'_>,
    site: Site,
) -> Result<Tensor> {
    let LinearCrossEntropyOptions { linear_bias, weight, reduction, ignore_index, .. } = *options;
    let mut inputs: SmallVec<[Tensor; 5]> =
        smallvec::smallvec![x.contiguous()?, w.contiguous()?, target.contiguous()?];
    for one in linear_bias.iter().chain(&weight) {
        inputs.push(one.contiguous()?);
    }
    let wants =
        |tensor: Option<&Tensor>| is_grad_enabled() && tensor.is_some_and(Tensor::requires_grad);
    let args = LinearCrossEntropyArgs {
        nll: NllArgs { reduction, ignore_index, weight: weight.is_some() },
        smoothing: options.label_smoothing,
        biased: linear_bias.is_some(),
        to: [wants(Some(x)), wants(Some(w)), wants(linear_bias)],
    };
    let inputs: SmallVec<[&Tensor; 5]> = inputs.iter().collect();
    Ok(first(apply(&LinearCrossEntropy(args), &inputs, Dest::New, site)?))
}

/// Halves in float32: sums over blocks of rows would lose too much in them.
fn widened(
    x: &Tensor,
    w: &Tensor,
    target: &Tensor,
    options: &LinearCrossEntropyOptions<'_>,
) -> Result<Tensor> {
    let wide = |tensor: &Tensor| match tensor.dtype() == x.dtype() {
        true => tensor.to(DType::F32),
        false => Ok(tensor.clone()),
    };
    let bias = options.linear_bias.map(wide).transpose()?;
    let weight = options.weight.map(wide).transpose()?;
    let options = LinearCrossEntropyOptions {
        linear_bias: bias.as_ref(),
        weight: weight.as_ref(),
        ..options.clone()
    };
    let dtype = options.loss_dtype.unwrap_or(x.dtype());
    wide(x)?.linear_cross_entropy_with(&wide(w)?, &wide(target)?, options)?.to(dtype)
}

/// From all scores: for losses of several dimensions, and targets that are probabilities.
fn whole(
    x: &Tensor,
    w: &Tensor,
    target: &Tensor,
    options: &LinearCrossEntropyOptions<'_>,
) -> Result<Tensor> {
    let width = w.shape()[w.rank() - 1] as i64;
    let mut scores = x.matmul(&w.reshape(&[-1, width])?.t()?)?;
    if let Some(bias) = options.linear_bias {
        scores = scores.add(&bias.reshape(&[-1])?)?;
    }
    let lead = x.shape()[..x.rank() - 1].iter();
    let sizes: SmallVec<[i64; 6]> =
        lead.chain(&w.shape()[..w.rank() - 1]).map(|&size| size as i64).collect();
    let of_scores = CrossEntropyOptions {
        weight: options.weight,
        reduction: options.reduction,
        ignore_index: options.ignore_index,
        label_smoothing: options.label_smoothing,
    };
    let loss = scores.reshape(&sizes)?.cross_entropy_with(target, of_scores)?;
    loss.to(options.loss_dtype.unwrap_or(x.dtype()))
}
