//! Batch normalization: `(x - mean) / sqrt(variance + eps)` over all dimensions but the second,
//! scaled and shifted. In training by the batch's own statistics, which also go into the running
//! ones (written beside the result); in evaluation by the running ones, which are inputs then.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::channels_last::{is_channels_last, laid_out};
use super::nn::{check_float, info};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves};
use crate::prepare::apply;
use plimsoll_kernels::cpu::batch_norm::{
    self as cpu, BatchNormArgs, BatchNormBackwardArgs, BatchNormGrads,
};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs in training [x, weight?, bias?], in evaluation [x, mean, variance, weight?, bias?].
/// Outputs [y], and in training [mean, 1 / deviation] if backward will want them, then running mean
/// and variance if there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchNorm(pub(crate) BatchNormArgs);

/// Refuses running statistics, a weight or a bias that do not go with `x`.
pub(crate) fn check_parameters(x: &Meta, given: &[(&str, &Meta)]) -> Result<()> {
    let channels = x.shape().get(1).copied().unwrap_or(0);
    for (role, meta) in given {
        if meta.shape() != [channels] {
            return Err(Error::shape(
                BATCH_NORM.name,
                format!(
                    "{role} should have shape [{channels}], an element for each channel of the input of shape {:?}, \
                     not {:?}",
                    x.shape(),
                    meta.shape()
                ),
            ));
        }
    }
    // All of the input's dtype, or all float32 beside an input of half precision.
    let Some((_, first)) = given.first() else { return Ok(()) };
    let mixed = x.dtype.size_bytes() < 4 && first.dtype == DType::F32;
    for (role, meta) in given {
        if meta.dtype != first.dtype || (meta.dtype != x.dtype && !mixed) {
            return Err(Error::dtype(
                BATCH_NORM.name,
                format!(
                    "{role} is {} beside an input of {} and {} of {}; all must have the input's dtype, or all \
                     float32 where it is of half precision: convert with `to`",
                    meta.dtype, x.dtype, given[0].0, first.dtype
                ),
            ));
        }
    }
    Ok(())
}

impl BatchNorm {
    fn weight_at(&self) -> usize {
        if self.0.training { 1 } else { 3 }
    }

    fn bias_at(&self) -> usize {
        self.weight_at() + usize::from(self.0.weight)
    }

    fn check(&self, x: &Meta) -> Result<()> {
        check_float(&BATCH_NORM, x)?;
        let shape = x.shape();
        if shape.len() < 2 {
            return Err(Error::shape(
                BATCH_NORM.name,
                format!(
                    "the input needs two dimensions or more, a batch and its channels, not {shape:?}"
                ),
            ));
        }
        let each = shape[2..].iter().fold(shape[0], |all, &size| all.saturating_mul(size));
        let wrong = |why: String| Err(Error::invalid_argument(why).in_operation(BATCH_NORM.name));
        if self.0.training && each == 1 {
            return wrong(format!(
                "Expected more than 1 value per channel when training, got input size {shape:?}"
            ));
        }
        // Instances are normalized with 0 too; of batches PyTorch's functional refuses it.
        if self.0.training && self.0.eps < 0.0 {
            let eps = self.0.eps;
            return wrong(format!("eps must not be negative during training, but is {eps}"));
        }
        Ok(())
    }

    /// Which of the gradients that depend on values are needed: the input's, the weight's.
    fn values(&self, needs: Needs) -> (bool, bool) {
        (needs.has(0), self.0.weight && needs.has(self.weight_at()))
    }
}

/// A new tensor of the input's shape, channels last if it is an image or a volume that is.
fn like_input(x: &Meta) -> Result<Meta> {
    let channels_last = x.shape().len() > 3 && is_channels_last(&x.layout);
    laid_out(x.shape(), x.dtype, channels_last)
}

impl Operation for BatchNorm {
    fn info(&self) -> &'static OpInfo {
        &BATCH_NORM
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        let x = inputs[0];
        self.check(x)?;
        let mut outputs: Metas = smallvec::smallvec![like_input(x)?];
        let (input, weight) = self.values(needs);
        if self.0.training && (input || weight) {
            // Half types would lose in them what the gradient needs.
            let dtype = if x.dtype.size_bytes() < 4 { DType::F32 } else { x.dtype };
            let channels = &x.shape()[1..2];
            outputs
                .extend([Meta::contiguous(channels, dtype)?, Meta::contiguous(channels, dtype)?]);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let (input, weight) = self.values(needs);
        let statistics = if self.0.training {
            Saves::output(1).and(Saves::output(2))
        } else {
            Saves::input(1).and(Saves::input(2))
        };
        // The bias alone needs no values, and in evaluation the input's gradient none of the input.
        statistics
            .when(input || weight)
            .and(Saves::input(0).when(weight || (input && self.0.training)))
            .and(Saves::input(self.weight_at()).when(self.0.weight && input))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::batch_norm_workspace_bytes(inputs, outputs, self.0.training)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::batch_norm(launch, self.0)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::batch_norm_workspace_bytes(inputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::batch_norm(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (input, weight) = self.values(backward.needs);
        let bias = self.0.bias && backward.needs.has(self.bias_at());
        let wanted = BatchNormGrads { input, weight, bias };
        let grad = backward.grad()?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        if !(input || weight) {
            let dtype = backward.inputs[self.bias_at()].dtype;
            grads[self.bias_at()] = Some(over_channels(grad)?.to_dtype(dtype, Site::in_force())?);
            return Ok(grads);
        }
        if is_grad_enabled() {
            self.composite(backward, wanted, &mut grads)?;
            return Ok(grads);
        }
        // In evaluation the input's gradient does not depend on the input: its place is only held.
        let x = backward.saved_inputs[0].as_ref().unwrap_or(grad);
        let [mean, spread] = if self.0.training {
            [backward.output(1)?, backward.output(2)?]
        } else {
            [backward.input(1)?, backward.input(2)?]
        };
        let mut inputs: SmallVec<[&Tensor; 5]> = smallvec::smallvec![grad, x, mean, spread];
        if self.0.weight && input {
            inputs.push(backward.input(self.weight_at())?);
        }
        let args = BatchNormBackwardArgs { training: self.0.training, wanted, eps: self.0.eps };
        let parameters = backward.inputs.last().map_or(x.dtype(), |meta| meta.dtype);
        let op = BatchNormBackward { args, parameters };
        let mut results = apply(&op, &inputs, Dest::New, Site::in_force())?.into_iter();
        for (wanted, at) in [(input, 0), (weight, self.weight_at()), (bias, self.bias_at())] {
            if wanted {
                grads[at] = results.next();
            }
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The dimensions that a batch norm goes over.
fn dims(x: &Tensor) -> SmallVec<[i64; 5]> {
    (0..x.rank() as i64).filter(|&dim| dim != 1).collect()
}

/// The sum over all dimensions but the channels'.
fn over_channels(x: &Tensor) -> Result<Tensor> {
    x.sum_over(&dims(x), false)
}

impl BatchNorm {
    /// The gradients from differentiable operations. In training mean and deviation are computed
    /// again from x, so that they can be differentiated too.
    fn composite(
        &self,
        backward: &Backward<'_>,
        wanted: BatchNormGrads,
        grads: &mut Grads,
    ) -> Result<()> {
        let site = Site::in_force();
        let given = backward.grad()?;
        let dtype = if given.dtype().size_bytes() < 4 { DType::F32 } else { given.dtype() };
        let wide = |x: &Tensor| x.to_dtype(dtype, site);
        let grad = wide(given)?;
        let dims = dims(given);
        // A channel's element beside the input's dimensions.
        let mut sizes: SmallVec<[i64; 5]> = smallvec::smallvec![1; given.rank()];
        sizes[1] = given.shape()[1] as i64;
        let along = |parameter: &Tensor| wide(&parameter.reshape(&sizes)?);
        let mean = |x: &Tensor| x.mean_over(&dims, true);
        let x = match &backward.saved_inputs[0] {
            Some(x) => Some(wide(x)?),
            None => None,
        };
        let (centered, rstd) = match (&x, self.0.training) {
            (Some(x), true) => {
                let centered = x.sub(&mean(x)?)?;
                let variance = mean(&centered.mul(&centered)?)?;
                (Some(centered), variance.add(self.0.eps)?.rsqrt()?)
            }
            (x, _) => {
                let center = along(backward.input(1)?)?;
                let centered = match x {
                    Some(x) => Some(x.sub(&center)?),
                    None => None,
                };
                (centered, along(backward.input(2)?)?.add(self.0.eps)?.rsqrt()?)
            }
        };
        let normal = match &centered {
            Some(centered) => Some(centered.mul(&rstd)?),
            None => None,
        };
        if wanted.input {
            let scaled = match self.0.weight {
                true => grad.mul(&along(backward.input(self.weight_at())?)?)?,
                false => grad.clone(),
            };
            let part = match normal.as_ref().filter(|_| self.0.training) {
                Some(normal) => {
                    let along = normal.mul(&mean(&scaled.mul(normal)?)?)?;
                    scaled.sub(&mean(&scaled)?)?.sub(&along)?
                }
                None => scaled,
            };
            grads[0] = Some(part.mul(&rstd)?.to_dtype(given.dtype(), site)?);
        }
        let kept = |at: usize| backward.inputs[at].dtype;
        if let (true, Some(normal)) = (wanted.weight, &normal) {
            let at = self.weight_at();
            grads[at] = Some(over_channels(&grad.mul(normal)?)?.to_dtype(kept(at), site)?);
        }
        if wanted.bias {
            let at = self.bias_at();
            grads[at] = Some(over_channels(&grad)?.to_dtype(kept(at), site)?);
        }
        Ok(())
    }
}

/// The gradients in one kernel from [grad, x, mean, 1 / deviation or variance, weight?], for
/// backward passes that nobody differentiates again.
#[derive(Clone, Copy, Debug)]
struct BatchNormBackward {
    args: BatchNormBackwardArgs,
    /// The dtype of weight and bias.
    parameters: DType,
}

impl Operation for BatchNormBackward {
    fn info(&self) -> &'static OpInfo {
        &BATCH_NORM_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let x = inputs[1];
        let BatchNormGrads { input, weight, bias } = self.args.wanted;
        let mut outputs = Metas::new();
        if input {
            outputs.push(like_input(x)?);
        }
        for _ in 0..usize::from(weight) + usize::from(bias) {
            outputs.push(Meta::contiguous(&x.shape()[1..2], self.parameters)?);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::batch_norm_backward_workspace_bytes(inputs, outputs, self.args)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::batch_norm_backward(launch, self.args)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::batch_norm_workspace_bytes(inputs[1])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::batch_norm_backward(launch, self.args)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(super) static BATCH_NORM: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::BATCH_NORM),
    ..info(
        "batch_norm",
        &[
            "batch_norm(Tensor self, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
        ],
    )
};
/// Internal: reached only through the derivative.
static BATCH_NORM_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::BATCH_NORM),
    ..info("batch_norm_backward", &[])
};
