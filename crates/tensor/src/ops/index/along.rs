//! gather and scatter_add: an index tensor says, for each of its elements, where along one
//! dimension to read or to add.

use std::sync::Arc;

use plimsoll_core::{Error, Result};

use super::info;
use crate::Tensor;
use crate::operation::{
    Autocast, Backward, Grads, Inferred, Input, Needs, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::index as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs [x, index]: x at the index along `dim`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    pub(crate) dim: usize,
}

impl Operation for Gather {
    fn info(&self) -> &'static OpInfo {
        &GATHER
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_index(GATHER.name, inputs[0], inputs[1], self.dim)?;
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::gather(launch, self.dim)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let zeros = Tensor::zeros_on(grad.entry(), &backward.inputs[0])?;
        let result = zeros.scatter_add(self.dim as i64, backward.input(1)?, grad)?;
        Ok(smallvec::smallvec![Some(result), None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Inputs [x, index, source], the last two of one shape: x with the source added at the index along
/// `dim`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScatterAdd {
    pub(crate) dim: usize,
}

impl Operation for ScatterAdd {
    fn info(&self) -> &'static OpInfo {
        &SCATTER_ADD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (x, index, source) = (inputs[0], inputs[1], inputs[2]);
        check_index(SCATTER_ADD.name, x, index, self.dim)?;
        if source.dtype != x.dtype {
            return Err(Error::dtype(
                SCATTER_ADD.name,
                format!(
                    "the source is {} and the target {}; convert the source with `to`",
                    source.dtype, x.dtype
                ),
            ));
        }
        if source.shape() != index.shape() {
            return Err(Error::shape(
                SCATTER_ADD.name,
                format!(
                    "the index of shape {:?} reaches outside the source of shape {:?}",
                    index.shape(),
                    source.shape()
                ),
            ));
        }
        Ok(Inferred::one(Meta::contiguous(x.shape(), x.dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(2))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::scatter_add(launch, self.dim)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let own = backward.for_input(0, || Ok(grad.clone()))?;
        let source = backward.for_input(2, || grad.gather(self.dim as i64, backward.input(1)?))?;
        Ok(smallvec::smallvec![own, None, source])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// An index must have the rank of what it indexes, and not be larger in the dimensions other than
/// `dim`.
fn check_index(op: &'static str, x: &Meta, index: &Meta, dim: usize) -> Result<()> {
    let (own, other) = (x.shape(), index.shape());
    let fits = own.len() == other.len() && (0..own.len()).all(|d| d == dim || other[d] <= own[d]);
    if !fits {
        return Err(Error::shape(
            op,
            format!(
                "an index of shape {other:?} does not fit shape {own:?}: it must have as many dimensions, and no size \
                 but that of dimension {dim} may be larger"
            ),
        ));
    }
    Ok(())
}

pub(super) static GATHER: OpInfo = OpInfo {
    out: Out::Exact,
    inputs: &[Input::Given, Input::Index],
    ..info("gather", &["gather(Tensor self, int dim, Tensor index) -> Tensor"])
};
pub(super) static SCATTER_ADD: OpInfo = OpInfo {
    in_place: true,
    inputs: &[Input::Given, Input::Index, Input::Given],
    autocast: Autocast::WIDEST_ON_CUDA,
    ..info(
        "scatter_add",
        &["scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"],
    )
};
