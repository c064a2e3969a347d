//! Choosing between two tensors by a third.

use std::sync::Arc;

use plimsoll_core::{Result, broadcast_shapes};
use plimsoll_cuda::source_files;

use super::elementwise;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Promotion, Saves,
};
use plimsoll_kernels::cpu::select as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Input 1 where input 0 is true, else input 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where;

impl Operation for Where {
    fn info(&self) -> &'static OpInfo {
        &WHERE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(WHERE.name, inputs, inputs[1].dtype)
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::where_(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::where_(launch, [0, 1, 2].map(|index| &launch.inputs[index]))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, condition) = (backward.grad()?, backward.input(0)?);
        let chosen = backward.for_input(1, || {
            Tensor::where_(condition, grad, 0.0)?.sum_to(backward.inputs[1].shape())
        })?;
        let other = backward.for_input(2, || {
            Tensor::where_(condition, 0.0, grad)?.sum_to(backward.inputs[2].shape())
        })?;
        Ok(smallvec::smallvec![None, chosen, other])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Inputs [x, mask, value]: x with the value, which has no dimensions, where the mask holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskedFill;

impl Operation for MaskedFill {
    fn info(&self) -> &'static OpInfo {
        &MASKED_FILL
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shapes = [inputs[0].shape(), inputs[1].shape()];
        let shape = broadcast_shapes(MASKED_FILL.name, &shapes)?;
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let [x, mask, value] = [0, 1, 2].map(|index| launch.inputs[index]);
        cpu::where_(&CpuLaunch { inputs: &[mask, value, x], ..*launch })
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::where_(launch, [1, 2, 0].map(|index| &launch.inputs[index]))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, mask) = (backward.grad()?, backward.input(1)?);
        let own = backward
            .for_input(0, || Tensor::where_(mask, 0.0, grad)?.sum_to(backward.inputs[0].shape()))?;
        let value = backward
            .for_input(2, || Tensor::where_(mask, grad, 0.0)?.sum_to(backward.inputs[2].shape()))?;
        Ok(smallvec::smallvec![own, None, value])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static MASKED_FILL: OpInfo = OpInfo {
    name: "masked_fill",
    family: "select",
    signatures: &["masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor"],
    differentiable: true,
    in_place: true,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::SELECT),
    inputs: &[Input::Given, Input::Given, Input::Given],
    ..OpInfo::BARE
};

static WHERE: OpInfo = OpInfo {
    name: "where",
    family: "select",
    signatures: &["where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor"],
    differentiable: true,
    out: Out::Exact,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::SELECT),
    inputs: &[Input::Condition, Input::Operand],
    promotion: Promotion::Common,
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&WHERE, &MASKED_FILL];
