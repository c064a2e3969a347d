//! Floats taken apart into fraction and exponent.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::arithmetic as cpu;
use plimsoll_kernels::{Argument, CpuLaunch, Meta};

use super::elementwise;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Metas, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};

/// Input 0 as a fraction and an exponent of 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frexp;

impl Operation for Frexp {
    fn info(&self) -> &'static OpInfo {
        &FREXP
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = elementwise::output_layout(FREXP.name, inputs)?;
        let fraction = Meta { layout: layout.clone(), dtype: inputs[0].dtype };
        Ok(Inferred::Exact(Metas::from_iter([fraction, Meta { layout, dtype: DType::I32 }])))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::frexp(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let only = &[Argument::Input(0)];
        cuda::tail_of(launch, &FREXP, only, [0.0; 3])?;
        cuda::tail_of(&launch.writing_output(1), &FREXP, only, [1.0, 0.0, 0.0])
    }

    /// The exponent stands still, so the fraction moves with the input over 2 to its power.
    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grads.first().and_then(Option::as_ref);
        let Some(grad) = grad else { return Ok(smallvec::smallvec![None]) };
        // The exponent in the gradient's dtype.
        let exponent = grad.zeros_like()?.add(backward.output(1)?)?;
        Ok(smallvec::smallvec![Some(grad.div(&exponent.exp2()?)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static FREXP: OpInfo = OpInfo {
    name: "frexp",
    family: "numeric",
    signatures: &["frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)"],
    differentiable: true,
    out: Out::Exact,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::FUNCTIONS),
    dtypes: DTypes::FLOATS,
    inputs: &[Input::Given],
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&FREXP];
