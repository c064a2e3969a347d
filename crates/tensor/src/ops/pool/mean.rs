//! The mean of each window, and what comes back from it: each is the other's derivative.

use std::sync::Arc;

use plimsoll_core::{DType, Result};

use super::{MEANS, Windows, check_dtype, info};
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Home, Inferred, Needs, OpInfo, Operation, Out};
use crate::ops::channels_last::{is_channels_last, laid_out};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::pool::{self as cpu, MeanArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;
use smallvec::SmallVec;

/// Input [x], output [y].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanPool {
    pub(crate) windows: Windows,
    pub(crate) args: MeanArgs,
    pub(crate) adaptive: bool,
}

/// Input [grad], output [x] of this size.
#[derive(Clone, Copy, Debug)]
struct MeanPoolBackward {
    pool: MeanPool,
    /// The last `rank` count.
    size: [usize; 3],
    channels_last: bool,
}

impl Operation for MeanPool {
    fn info(&self) -> &'static OpInfo {
        let at = self.windows.rank - 1;
        if self.adaptive {
            [&ADAPTIVE_AVG_POOL1D, &ADAPTIVE_AVG_POOL2D, &ADAPTIVE_AVG_POOL3D][at]
        } else {
            [&AVG_POOL1D, &AVG_POOL2D, &AVG_POOL3D][at]
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_dtype(self.info(), inputs[0])?;
        Ok(Inferred::one(self.windows.lay_out(inputs[0], false)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::mean_pool(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::mean_pool(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let x = &backward.inputs[0];
        let op = MeanPoolBackward {
            pool: *self,
            size: crate::ops::conv::space_of(x.shape()),
            channels_last: is_channels_last(&x.layout),
        };
        Ok(smallvec::smallvec![Some(apply_one(&op, &[backward.grad()?], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Operation for MeanPoolBackward {
    fn info(&self) -> &'static OpInfo {
        &AVG_POOL_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let grad = inputs[0];
        let size = &self.size[3 - self.pool.windows.rank..];
        let shape: SmallVec<[usize; 5]> = grad.shape()[..2].iter().chain(size).copied().collect();
        Ok(Inferred::one(laid_out(&shape, grad.dtype, self.channels_last)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::mean_pool_backward(launch, self.pool.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::mean_pool_backward(launch, self.pool.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let back = apply_one(&self.pool, &[backward.grad()?], Site::in_force())?;
        Ok(smallvec::smallvec![Some(back)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn mean(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { dtypes: MEANS, ..info(name, signatures) }
}

pub(super) static AVG_POOL1D: OpInfo = OpInfo {
    home: Home::Torch,
    ..mean(
        "avg_pool1d",
        &[
            "avg_pool1d(Tensor input, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        ],
    )
};
pub(super) static AVG_POOL2D: OpInfo = OpInfo {
    out: Out::Exact,
    ..mean(
        "avg_pool2d",
        &[
            "avg_pool2d(Tensor input, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        ],
    )
};
pub(super) static AVG_POOL3D: OpInfo = OpInfo {
    out: Out::Exact,
    // PyTorch has no means of halves over volumes.
    dtypes: DTypes::of(&[DType::F32, DType::F64, DType::I64]),
    ..mean(
        "avg_pool3d",
        &[
            "avg_pool3d(Tensor input, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        ],
    )
};
pub(super) static ADAPTIVE_AVG_POOL1D: OpInfo = OpInfo {
    home: Home::Torch,
    ..info(
        "adaptive_avg_pool1d",
        &["adaptive_avg_pool1d(Tensor input, int[] output_size) -> Tensor"],
    )
};
pub(super) static ADAPTIVE_AVG_POOL2D: OpInfo = info(
    "adaptive_avg_pool2d",
    &["adaptive_avg_pool2d(Tensor input, int[] output_size) -> Tensor"],
);
pub(super) static ADAPTIVE_AVG_POOL3D: OpInfo = info(
    "adaptive_avg_pool3d",
    &["adaptive_avg_pool3d(Tensor input, int[] output_size) -> Tensor"],
);
/// Internal: reached only through the derivative.
static AVG_POOL_BACKWARD: OpInfo = mean("avg_pool_backward", &[]);
