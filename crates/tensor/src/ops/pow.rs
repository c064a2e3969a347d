//! Powers with a host number as the exponent.

use std::sync::Arc;

use plimsoll_core::{Result, Scalar};

use super::elementwise;
use crate::operation::{Backward, Grads, Inferred, Needs, OpInfo, Operation, Saves, dtypes};
use plimsoll_kernels::cpu::binary as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Each element to the power of `exponent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pow {
    pub(crate) exponent: Scalar,
}

impl Operation for Pow {
    fn info(&self) -> &'static OpInfo {
        &POW
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(POW.name, inputs, inputs[0].dtype)
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).when(self.exponent.to_f64() != 0.0)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::pow_scalar(launch, self.exponent)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, exponent) = (backward.grad()?, self.exponent.to_f64());
        // The zeroth power is 1 even at 0, where the general rule would give 0 times infinity.
        let result = if exponent == 0.0 {
            grad.zeros_like()?
        } else {
            grad.mul(&backward.input(0)?.pow(exponent - 1.0)?.mul(exponent)?)?
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static POW: OpInfo = OpInfo {
    name: "pow",
    family: "pow",
    signature: "pow(Tensor self, Scalar exponent) -> Tensor",
    summary: "Each element to the power of a number",
    differentiable: true,
    in_place: true,
    out: true,
    cuda: false,
    dtypes: dtypes::NUMBERS,
};

pub(crate) static OPS: &[&OpInfo] = &[&POW];
