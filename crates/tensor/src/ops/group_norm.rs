//! Group normalization: mean 0 and variance 1 over groups of channels of each sample, then a scale
//! and a shift for each channel.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::channels_last::{in_order_of, laid_out_like};
use super::nn::{check_float, info};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Backward, Grads, Home, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply;
use plimsoll_kernels::cpu::group_norm::{self as cpu, GroupNormArgs, GroupNormGrads};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs [x, weight?, bias?]. Outputs [y], and [mean, 1 / deviation] of each group if backward
/// will want them or `statistics` are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupNorm {
    pub(crate) args: GroupNormArgs,
}

impl GroupNorm {
    /// Where the bias is among the inputs.
    fn bias_at(&self) -> usize {
        1 + usize::from(self.args.weight)
    }

    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let name = GROUP_NORM.name;
        check_float(&GROUP_NORM, inputs[0])?;
        let shape = inputs[0].shape();
        let groups = self.args.groups;
        let &[_, channels, ..] = shape else {
            return Err(Error::shape(
                name,
                format!(
                    "the input needs samples and channels, two or more dimensions, and has {shape:?}"
                ),
            ));
        };
        if groups == 0 || channels == 0 || channels % groups != 0 {
            return Err(Error::shape(
                name,
                format!("{channels} channels cannot be divided into {groups} groups of one size"),
            ));
        }
        for meta in &inputs[1..] {
            if meta.shape() != [channels] {
                return Err(Error::shape(
                    name,
                    format!(
                        "weight and bias need one element a channel, {channels}, and one has the shape {:?}",
                        meta.shape()
                    ),
                ));
            }
            if meta.dtype != inputs[0].dtype {
                return Err(Error::dtype(
                    name,
                    format!(
                        "weight or bias is {} and the input {}; convert one with `to`",
                        meta.dtype, inputs[0].dtype
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl Operation for GroupNorm {
    fn info(&self) -> &'static OpInfo {
        &GROUP_NORM
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let (shape, dtype) = (inputs[0].shape(), inputs[0].dtype);
        let mut outputs: Metas = smallvec::smallvec![laid_out_like(&inputs[..1], shape, dtype)?];
        if needs.any() {
            // Half types would lose in them what the gradient needs.
            let moments = if dtype.size_bytes() < 4 { DType::F32 } else { dtype };
            let groups = Meta::contiguous(&[shape[0], self.args.groups], moments)?;
            outputs.extend([groups.clone(), groups]);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn saves(&self, needs: Needs) -> Saves {
        // The bias alone needs no values.
        let values = needs.has(0) || (self.args.weight && needs.has(1));
        let statistics = Saves::output(1).and(Saves::output(2));
        Saves::input(0)
            .and(statistics)
            .when(values)
            .and(Saves::input(1).when(self.args.weight && needs.has(0)))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::group_norm(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::group_norm(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let needs = backward.needs;
        let wanted = GroupNormGrads {
            input: needs.has(0),
            weight: self.args.weight && needs.has(1),
            bias: self.args.bias && needs.has(self.bias_at()),
        };
        let grad = backward.grad()?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        if !(wanted.input || wanted.weight) {
            grads[self.bias_at()] = Some(sum_channels(grad)?);
            return Ok(grads);
        }
        let x = backward.input(0)?;
        let weight = if self.args.weight && wanted.input { Some(backward.input(1)?) } else { None };
        if is_grad_enabled() {
            self.composite(grad, x, weight, wanted, &mut grads)?;
            return Ok(grads);
        }
        let grad = in_order_of(grad, x)?;
        let op = GroupNormBackward { groups: self.args.groups, weight: weight.is_some(), wanted };
        let mut inputs: SmallVec<[&Tensor; 5]> =
            smallvec::smallvec![&grad, x, backward.output(1)?, backward.output(2)?];
        inputs.extend(weight);
        let mut results = apply(&op, &inputs, Dest::New, Site::in_force())?.into_iter();
        for (wanted, at) in [(wanted.input, 0), (wanted.weight, 1), (wanted.bias, self.bias_at())] {
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

impl GroupNorm {
    /// The gradients from differentiable operations.
    fn composite(
        &self,
        grad: &Tensor,
        x: &Tensor,
        weight: Option<&Tensor>,
        wanted: GroupNormGrads,
        grads: &mut Grads,
    ) -> Result<()> {
        let whole: SmallVec<[i64; 5]> = x.shape().iter().map(|&size| size as i64).collect();
        let groups = |x: &Tensor| {
            let length = x.numel() / (x.shape()[0] * self.args.groups).max(1);
            x.reshape(&[whole[0], self.args.groups as i64, length as i64])
        };
        let mean = |x: &Tensor| x.mean_over(&[-1], true);
        let grouped = groups(x)?;
        let centered = grouped.sub(&mean(&grouped)?)?;
        let rstd = mean(&centered.mul(&centered)?)?.add(self.args.eps)?.rsqrt()?;
        let normal = centered.mul(&rstd)?;
        if wanted.input {
            let scaled = match weight {
                Some(weight) => {
                    let mut sizes: SmallVec<[i64; 5]> = smallvec::smallvec![1; x.rank()];
                    sizes[1] = -1;
                    grad.mul(&weight.view(&sizes[..])?)?
                }
                None => grad.clone(),
            };
            let scaled = groups(&scaled)?;
            let along = normal.mul(&mean(&scaled.mul(&normal)?)?)?;
            let own = scaled.sub(&mean(&scaled)?)?.sub(&along)?.mul(&rstd)?;
            grads[0] = Some(own.reshape(&whole)?);
        }
        if wanted.weight {
            grads[1] = Some(sum_channels(&grad.mul(&normal.reshape(&whole)?)?)?);
        }
        if wanted.bias {
            grads[self.bias_at()] = Some(sum_channels(grad)?);
        }
        Ok(())
    }
}

/// Sums over all dimensions but the channels.
fn sum_channels(x: &Tensor) -> Result<Tensor> {
    let dims: SmallVec<[i64; 5]> = (0..x.rank() as i64).filter(|&dim| dim != 1).collect();
    x.sum_over(&dims, false)
}

/// The gradients in one kernel from [grad, x, mean, 1 / deviation, weight?], for backward passes
/// that nobody differentiates again.
#[derive(Clone, Copy, Debug)]
struct GroupNormBackward {
    groups: usize,
    weight: bool,
    wanted: GroupNormGrads,
}

impl Operation for GroupNormBackward {
    fn info(&self) -> &'static OpInfo {
        &GROUP_NORM_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (shape, dtype) = (inputs[1].shape(), inputs[1].dtype);
        let mut outputs = Metas::new();
        if self.wanted.input {
            outputs.push(laid_out_like(&inputs[1..2], shape, dtype)?);
        }
        for _ in 0..usize::from(self.wanted.weight) + usize::from(self.wanted.bias) {
            outputs.push(Meta::contiguous(&shape[1..2], dtype)?);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::group_norm_backward_workspace_bytes(inputs[1].shape())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::group_norm_backward(launch, self.groups, self.weight, self.wanted)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cpu::group_norm_backward_workspace_bytes(inputs[1].shape())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let GroupNormGrads { input, weight, bias } = self.wanted;
        let mut outputs = launch.outputs.iter();
        let outputs =
            [input, weight, bias].map(|wanted| if wanted { outputs.next() } else { None });
        let weight = launch.inputs.get(4).filter(|_| self.weight);
        cuda::group_norm_backward(launch, self.groups, weight, outputs)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(super) static GROUP_NORM: OpInfo = OpInfo {
    home: Home::Functional,
    cuda: OnCuda::Kernels(&source_files::GROUP_NORM),
    ..info(
        "group_norm",
        &[
            "group_norm(Tensor self, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
        ],
    )
};
/// Internal: reached only through the derivative.
static GROUP_NORM_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::GROUP_NORM),
    ..info("group_norm_backward", &[])
};
