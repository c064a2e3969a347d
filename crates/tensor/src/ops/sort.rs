//! Sorting along a dimension: the values in order, and where each came from.

use std::sync::Arc;

use plimsoll_core::{DType, Result};

use super::elementwise::output_layout;
use crate::Tensor;
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OpInfo, Operation, Out, Saves};
use plimsoll_kernels::cpu::sort as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Outputs [values, indices]. Stable; NaN counts as the largest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) dim: usize,
    pub(crate) descending: bool,
}

impl Operation for Sort {
    fn info(&self) -> &'static OpInfo {
        &SORT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = output_layout(SORT.name, inputs)?;
        let values = Meta { layout: layout.clone(), dtype: inputs[0].dtype };
        let indices = Meta { layout, dtype: DType::I64 };
        Ok(Inferred::Exact(smallvec::smallvec![values, indices]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::sort_along_workspace_bytes(inputs[0], outputs, self.dim)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::sort(launch, self.dim, self.descending)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let zeros = Tensor::zeros_on(grad.entry(), &backward.inputs[0])?;
        let result = zeros.scatter_add(self.dim as i64, backward.output(1)?, grad)?;
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static SORT: OpInfo = OpInfo {
    name: "sort",
    family: "sort",
    signatures: &[
        "sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> (Tensor values, Tensor indices)",
    ],
    differentiable: true,
    in_place: false,
    out: Out::Exact,
    dtypes: DTypes::ALL,
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&SORT];
