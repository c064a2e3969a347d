//! The likelihood of target classes: from log-probabilities (`nll_loss`) and from scores
//! (`cross_entropy`, which keeps two numbers a row for backward, and no probabilities).

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::loss::info;
use super::nn::check_float;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, Grads, Inferred, Input, Metas, Needs, OnCuda, OpInfo, Operation, Promotion, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::cross_entropy::{self as cpu, CrossEntropyArgs};
use plimsoll_kernels::cpu::nll::{self, NllArgs, Reduction};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// The dimension of the classes.
fn class_dim(rank: usize) -> usize {
    usize::from(rank > 1)
}

/// Sums and moments of half types would lose too much in them.
fn wide(dtype: DType) -> DType {
    if dtype.size_bytes() < 4 { DType::F32 } else { dtype }
}

/// Checks [scores, targets, weight?].
fn check(info: &'static OpInfo, inputs: &[&Meta], weighted: bool) -> Result<()> {
    check_float(info, inputs[0])?;
    let (scores, targets) = (inputs[0].shape(), inputs[1].shape());
    let Some(&classes) = scores.get(class_dim(scores.len())) else {
        return Err(Error::invalid_argument("the input needs 1 or more dimensions, and has none")
            .in_operation(info.name));
    };
    if scores.len() > 1 && targets.first() != scores.first() {
        return Err(Error::invalid_argument(format!(
            "the batch of the input, of shape {scores:?}, must be that of the target, of shape {targets:?}"
        ))
        .in_operation(info.name));
    }
    let mut expected = Dims::from(scores);
    expected.remove(class_dim(scores.len()));
    if expected.as_slice() != targets {
        return Err(Error::shape(
            info.name,
            format!(
                "an input of shape {scores:?} needs targets of shape {expected:?}, and these have {targets:?}"
            ),
        ));
    }
    let Some(weight) = inputs.get(2).filter(|_| weighted) else { return Ok(()) };
    if weight.shape() != [classes] {
        return Err(Error::shape(
            info.name,
            format!(
                "the weight needs one element a class, {classes}, and has {:?}",
                weight.shape()
            ),
        ));
    }
    if weight.dtype != inputs[0].dtype {
        return Err(Error::dtype(
            info.name,
            format!(
                "the weight is {} and the input {}; convert one with `to`",
                weight.dtype, inputs[0].dtype
            ),
        ));
    }
    Ok(())
}

/// The loss of [scores, targets], and the sum of the weights for backward of a mean.
fn loss_metas(inputs: &[&Meta], reduction: Reduction, needs: Needs) -> Result<Metas> {
    let (targets, dtype) = (inputs[1].shape(), inputs[0].dtype);
    let shape = if reduction == Reduction::None { targets } else { &[] };
    let mut metas: Metas = smallvec::smallvec![Meta::contiguous(shape, dtype)?];
    if needs.has(0) {
        metas.push(Meta::contiguous(&[], wide(dtype))?);
    }
    Ok(metas)
}

/// [log-probabilities, targets, weight?] -> the negative log-likelihood of the targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NllLoss(pub(crate) NllArgs);

impl Operation for NllLoss {
    fn info(&self) -> &'static OpInfo {
        &NLL_LOSS
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        check(&NLL_LOSS, inputs, self.0.weight)?;
        Ok(Inferred::Exact(loss_metas(inputs, self.0.reduction, needs)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let weight = Saves::input(2).when(self.0.weight);
        Saves::input(1).and(weight).and(Saves::output(1)).when(needs.has(0))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        nll::nll_workspace_bytes(inputs[0].shape())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        nll::nll_loss(launch, self.0)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::cross_entropy_workspace_bytes(inputs[0].shape())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::nll_loss(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let own = backward.for_input(0, || {
            let op = NllBackward { args: self.0, shape: backward.inputs[0].shape().into() };
            op.apply(backward.grad()?, backward, backward.output(1)?)
        })?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = own;
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// [grad, targets, weight?, sum of weights] -> the gradient of the log-probabilities. Linear in the
/// gradient, so its own derivative is the loss again.
#[derive(Clone, Debug)]
struct NllBackward {
    args: NllArgs,
    shape: Dims,
}

impl NllBackward {
    /// With targets and weight as the forward operation saved them.
    fn apply(&self, grad: &Tensor, backward: &Backward<'_>, total: &Tensor) -> Result<Tensor> {
        let grad = grad.contiguous()?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec::smallvec![&grad, backward.input(1)?];
        if self.args.weight {
            inputs.push(backward.input(2)?);
        }
        inputs.push(total);
        apply_one(self, &inputs, Site::in_force())
    }
}

impl Operation for NllBackward {
    fn info(&self) -> &'static OpInfo {
        &NLL_LOSS_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(&self.shape, inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1).and(Saves::input(2).when(self.args.weight))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        nll::nll_loss_backward(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::nll_loss_backward(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?.contiguous()?;
        let mut inputs: SmallVec<[&Tensor; 3]> = smallvec::smallvec![&grad, backward.input(1)?];
        if self.args.weight {
            inputs.push(backward.input(2)?);
        }
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = Some(apply_one(&NllLoss(self.args), &inputs, Site::in_force())?);
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// [scores, targets, weight?] -> the loss; for backward also the sum of the weights and each row's
/// largest score and logarithm of its sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossEntropy(pub(crate) CrossEntropyArgs);

impl Operation for CrossEntropy {
    fn info(&self) -> &'static OpInfo {
        &CROSS_ENTROPY
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        check(&CROSS_ENTROPY, inputs, self.0.nll.weight)?;
        let mut metas = loss_metas(inputs, self.0.nll.reduction, needs)?;
        if needs.has(0) {
            let moments = Meta::contiguous(inputs[1].shape(), wide(inputs[0].dtype))?;
            metas.extend([moments.clone(), moments]);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let weight = Saves::input(2).when(self.0.nll.weight);
        let outputs = Saves::output(1).and(Saves::output(2)).and(Saves::output(3));
        Saves::input(0).and(Saves::input(1)).and(weight).and(outputs).when(needs.has(0))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::cross_entropy_workspace_bytes(inputs[0].shape())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cross_entropy(launch, self.0)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::cross_entropy_workspace_bytes(inputs[0].shape())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::cross_entropy(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = backward.for_input(0, || {
            if is_grad_enabled() {
                return self.composite(backward);
            }
            let grad = backward.grad()?.contiguous()?;
            let mut inputs: SmallVec<[&Tensor; 7]> =
                smallvec::smallvec![&grad, backward.input(0)?, backward.input(1)?];
            inputs.extend([backward.output(1)?, backward.output(2)?, backward.output(3)?]);
            if self.0.nll.weight {
                inputs.push(backward.input(2)?);
            }
            apply_one(&CrossEntropyBackward(self.0), &inputs, Site::in_force())
        })?;
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl CrossEntropy {
    /// The gradient from differentiable operations: that of the likelihood, through the logarithm
    /// of the softmax.
    fn composite(&self, backward: &Backward<'_>) -> Result<Tensor> {
        let CrossEntropyArgs { nll, smoothing } = self.0;
        let (grad, x, total) = (backward.grad()?, backward.input(0)?, backward.output(1)?);
        let dim = class_dim(x.rank());
        let op = NllBackward { args: nll, shape: x.shape().into() };
        let mut slope = op.apply(&grad.mul(1.0 - smoothing)?, backward, total)?;
        if smoothing > 0.0 {
            let targets = backward.input(1)?;
            let each = match nll.reduction {
                Reduction::None | Reduction::Sum => grad.clone(),
                Reduction::Mean => grad.div(&total.to_dtype(grad.dtype(), Site::in_force())?)?,
            };
            let counted = Tensor::where_(&targets.ne(nll.ignore_index)?, &each, 0.0)?;
            let mut spread =
                counted.unsqueeze(dim as i64)?.mul(smoothing / x.shape()[dim] as f64)?;
            if nll.weight {
                let mut sizes: SmallVec<[i64; 5]> = smallvec::smallvec![1; x.rank()];
                sizes[dim] = -1;
                spread = spread.mul(&backward.input(2)?.view(&sizes[..])?)?;
            }
            slope = slope.sub(&spread)?;
        }
        let probability = x.softmax(dim as i64)?;
        slope.sub(&probability.mul(&slope.sum_over(&[dim as i64], true)?)?)
    }
}

/// The gradient of the scores in one kernel, for backward passes that nobody differentiates again.
#[derive(Clone, Copy, Debug)]
struct CrossEntropyBackward(CrossEntropyArgs);

impl Operation for CrossEntropyBackward {
    fn info(&self) -> &'static OpInfo {
        &CROSS_ENTROPY_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[1].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cross_entropy_backward(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::cross_entropy_backward(launch, self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn of_classes(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        cuda: OnCuda::Kernels(&source_files::CROSS_ENTROPY),
        inputs: &[Input::Given, Input::Index, Input::Given],
        promotion: Promotion::None,
        ..info(name, signatures)
    }
}

pub(super) static NLL_LOSS: OpInfo = of_classes(
    "nll_loss",
    &[
        "nll_loss(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean', int ignore_index=-100) -> Tensor",
    ],
);
pub(super) static CROSS_ENTROPY: OpInfo = of_classes(
    "cross_entropy",
    &[
        "cross_entropy(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean', int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    ],
);
/// Internal: reached only through the derivatives.
static NLL_LOSS_BACKWARD: OpInfo = of_classes("nll_loss_backward", &[]);
static CROSS_ENTROPY_BACKWARD: OpInfo = OpInfo {
    inputs: &[Input::Given],
    differentiable: false,
    ..of_classes("cross_entropy_backward", &[])
};
