//! Resampling of spatial dimensions: nearest, linear, cubic and by area.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::{Properties, source_files};

use super::channels_last::{in_order, laid_out_like};
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::interpolate::{self as cpu, InterpolateArgs, InterpolateMode};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// [x] of [batch, channels, 1 to 3 spatial dimensions] -> x with these spatial sizes. Linear in x.
#[derive(Clone, Debug)]
pub(crate) struct Interpolate {
    pub(crate) args: InterpolateArgs,
    pub(crate) sizes: Dims,
}

fn resized(shape: &[usize], sizes: &[usize]) -> Dims {
    shape[..2].iter().chain(sizes).copied().collect()
}

impl Operation for Interpolate {
    fn info(&self) -> &'static OpInfo {
        &INTERPOLATE
    }

    fn node_name(&self, _inputs: &[Meta]) -> Option<&'static str> {
        let names = match self.args.mode {
            InterpolateMode::Nearest => [
                "UpsampleNearest1DBackward0",
                "UpsampleNearest2DBackward0",
                "UpsampleNearest3DBackward0",
            ],
            InterpolateMode::NearestExact => [
                "UpsampleNearestExact1DBackward0",
                "UpsampleNearestExact2DBackward0",
                "UpsampleNearestExact3DBackward0",
            ],
            InterpolateMode::Linear => [
                "UpsampleLinear1DBackward0",
                "UpsampleBilinear2DBackward0",
                "UpsampleTrilinear3DBackward0",
            ],
            InterpolateMode::Cubic => ["", "UpsampleBicubic2DBackward0", ""],
            InterpolateMode::Area => {
                ["SqueezeBackward1", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0"]
            }
        };
        let name = self.sizes.len().checked_sub(1).and_then(|at| names.get(at)).copied();
        name.filter(|name| !name.is_empty())
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = inputs[0].shape();
        if shape.len() != self.sizes.len() + 2 || !(1..=3).contains(&self.sizes.len()) {
            return Err(Error::invalid_argument(format!(
                "an input of shape {shape:?} needs a size for each dimension after batch and channels, 1 to 3, and \
                 the sizes are {:?}",
                self.sizes
            ))
            .in_operation(INTERPOLATE.name));
        }
        if inputs[0].dtype == DType::U8
            && matches!(self.args.mode, InterpolateMode::Linear | InterpolateMode::Cubic)
        {
            // PyTorch rounds these in its own fixed-point steps.
            return Err(Error::unsupported(
                INTERPOLATE.name,
                "bytes are resampled by the nearest pixel, or as images of two dimensions; convert them with `to` to a \
                 float first",
            ));
        }
        if shape[1..].contains(&0) || self.sizes.contains(&0) {
            return Err(Error::shape(
                INTERPOLATE.name,
                format!(
                    "channels and spatial sizes must be above 0: the input has the shape {shape:?}, the result the \
                     sizes {:?}",
                    self.sizes
                ),
            ));
        }
        let shape = resized(shape, &self.sizes);
        Ok(Inferred::one(match self.args.mode {
            // PyTorch makes means of volumes row-major.
            InterpolateMode::Area if shape.len() == 5 => Meta::contiguous(&shape, inputs[0].dtype)?,
            _ => laid_out_like(inputs, &shape, inputs[0].dtype)?,
        }))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::interpolate(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::interpolate(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let shape = backward.inputs[0].shape();
        let op = InterpolateBackward { of: self.clone(), sizes: shape[2..].into() };
        let grad = in_order(backward.grad()?)?;
        Ok(smallvec::smallvec![Some(apply_one(&op, &[&grad], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// [grad] -> the gradient of x. Its own derivative is the operation again.
#[derive(Clone, Debug)]
struct InterpolateBackward {
    of: Interpolate,
    sizes: Dims,
}

impl Operation for InterpolateBackward {
    fn info(&self) -> &'static OpInfo {
        &INTERPOLATE_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = resized(inputs[0].shape(), &self.sizes);
        Ok(Inferred::one(laid_out_like(inputs, &shape, inputs[0].dtype)?))
    }

    fn workspace_bytes(&self, _inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::interpolate_backward_workspace_bytes(&outputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::interpolate_backward(launch, self.of.args)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        _inputs: &[&Meta],
        outputs: &[Meta],
    ) -> usize {
        cuda::interpolate_backward_workspace_bytes(&outputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::interpolate_backward(launch, self.of.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = in_order(backward.grad()?)?;
        Ok(smallvec::smallvec![Some(apply_one(&self.of, &[&grad], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

const DTYPES: DTypes = DTypes::of(&[DType::U8, DType::F16, DType::BF16, DType::F32, DType::F64]);

static INTERPOLATE: OpInfo = OpInfo {
    name: "interpolate",
    home: Home::Functional,
    family: "interpolate",
    signatures: &[
        "interpolate(Tensor self, int[] size, str interpolate_mode='nearest', bool align_corners=False, float[]? scale_factor=None, bool antialias=False) -> Tensor",
    ],
    differentiable: true,
    dtypes: DTYPES,
    cuda: OnCuda::Kernels(&source_files::INTERPOLATE),
    ..OpInfo::BARE
};
/// Internal: reached only through the derivative.
static INTERPOLATE_BACKWARD: OpInfo = OpInfo {
    name: "interpolate_backward",
    family: "interpolate",
    differentiable: true,
    dtypes: DTypes::FLOATS,
    cuda: OnCuda::Kernels(&source_files::INTERPOLATE),
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&INTERPOLATE];
