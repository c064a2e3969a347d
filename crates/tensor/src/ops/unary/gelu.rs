//! The gradient of GELU's input together with GELU's values, from one reading of both: for backward
//! passes that have not kept the values.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_kernels::cpu::unary as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

use super::{GELU, GELU_TANH, UnaryRow, fused};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{Inferred, Needs, OpInfo, Operation};
use crate::ops::elementwise;
use crate::prepare::apply;

/// [grad, x] -> [the gradient of x, GELU of x].
#[derive(Clone, Copy, Debug)]
struct GeluBoth {
    tanh: bool,
}

/// The gradient of `x` from that of its GELU, and the GELU.
pub(crate) fn gelu_both(grad: &Tensor, x: &Tensor, tanh: bool) -> Result<(Tensor, Tensor)> {
    if is_grad_enabled() {
        let row: &'static UnaryRow = if tanh { &GELU_TANH } else { &GELU };
        return Ok(((row.derivative)(grad, x)?, super::new(row, x, Site::in_force())?));
    }
    let mut both = apply(&GeluBoth { tanh }, &[grad, x], Dest::New, Site::in_force())?.into_iter();
    let (Some(gradient), Some(value)) = (both.next(), both.next()) else {
        unreachable!("it has two results");
    };
    Ok((gradient, value))
}

impl Operation for GeluBoth {
    fn info(&self) -> &'static OpInfo {
        static EXACT: OpInfo = fused("gelu_both");
        static TANH: OpInfo = fused("gelu_tanh_both");
        if self.tanh { &TANH } else { &EXACT }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = elementwise::output_layout(self.info().name, inputs)?;
        let each = Meta { layout, dtype: inputs[1].dtype };
        Ok(Inferred::Exact(smallvec::smallvec![each.clone(), each]))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::gelu_backward(&CpuLaunch { outputs: &launch.outputs[..1], ..*launch }, self.tanh)?;
        let (inputs, outputs) = (&launch.inputs[1..], &launch.outputs[1..]);
        let value = if self.tanh { cpu::gelu_tanh } else { cpu::gelu };
        value(&CpuLaunch { inputs, outputs, ..*launch })
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::gelu_both(launch, self.info().name)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}
