//! Windows of images as columns, and columns added back into images: each is the other's
//! derivative.

use std::sync::Arc;

use plimsoll_core::{DType, Result};

use super::{check_dtype, info};
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OpInfo, Operation};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::unfold::{self as cpu, UnfoldArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// [batch, channels, height, width] -> [batch, channels x kernel, windows].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfold(pub(crate) UnfoldArgs);

/// [batch, channels x kernel, windows] -> [batch, channels, height, width].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    pub(crate) args: UnfoldArgs,
    pub(crate) size: [usize; 2],
}

impl Operation for Unfold {
    fn info(&self) -> &'static OpInfo {
        &IM2COL
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let x = inputs[0];
        check_dtype(&IM2COL, x)?;
        let [batch, channels, height, width] = super::shape::image(x.shape());
        let windows: usize = self.0.windows([height, width]).iter().product();
        let taps: usize = self.0.kernel.iter().product();
        Ok(Inferred::one(Meta::contiguous(&[batch, channels * taps, windows], x.dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::unfold(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unfold(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let [_, _, height, width] = super::shape::image(backward.inputs[0].shape());
        let op = Fold { args: self.0, size: [height, width] };
        Ok(smallvec::smallvec![Some(apply_one(&op, &[backward.grad()?], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Operation for Fold {
    fn info(&self) -> &'static OpInfo {
        &COL2IM
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let columns = inputs[0];
        check_dtype(&COL2IM, columns)?;
        let taps: usize = self.args.kernel.iter().product();
        let [height, width] = self.size;
        let shape = [columns.shape()[0], columns.shape()[1] / taps, height, width];
        Ok(Inferred::one(Meta::contiguous(&shape, columns.dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::fold(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::fold(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let back = apply_one(&Unfold(self.args), &[backward.grad()?], Site::in_force())?;
        Ok(smallvec::smallvec![Some(back)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Floats and bool, as PyTorch has it.
const DTYPES: DTypes = DTypes::of(&[DType::Bool, DType::F16, DType::BF16, DType::F32, DType::F64]);

pub(super) static IM2COL: OpInfo = OpInfo {
    dtypes: DTYPES,
    ..info(
        "im2col",
        &[
            "im2col(Tensor input, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
        ],
    )
};
pub(super) static COL2IM: OpInfo = OpInfo {
    dtypes: DTYPES,
    ..info(
        "col2im",
        &[
            "col2im(Tensor input, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
        ],
    )
};
