//! gather and the scatters: an index tensor says, for each of its elements, where along one
//! dimension to read, to write or to combine. `index_select`, `index_add` and those like them are
//! the same with one index for whole slices, which is an expanded index tensor.

use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_cuda::{Properties, source_files};

use super::info;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::index as cpu;
pub(crate) use plimsoll_kernels::cpu::index::Combine;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs [x, index]: x at the index along `dim`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    pub(crate) info: &'static OpInfo,
    pub(crate) dim: usize,
}

impl Operation for Gather {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_index(self.info.name, inputs[0], inputs[1], self.dim)?;
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::gather(launch, self.dim)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::gather(launch, self.dim)
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

/// Inputs [x, index, source]: x with the source, as far as the index goes, combined in at the index
/// along `dim`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    pub(crate) info: &'static OpInfo,
    pub(crate) dim: usize,
    pub(crate) combine: Combine,
}

impl Operation for Scatter {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (x, index, source) = (inputs[0], inputs[1], inputs[2]);
        let name = self.info.name;
        check_index(name, x, index, self.dim)?;
        if source.dtype != x.dtype {
            return Err(Error::dtype(
                name,
                format!(
                    "the source is {} and the target {}; convert the source with `to`",
                    source.dtype, x.dtype
                ),
            ));
        }
        let fits = source.shape().len() == index.shape().len()
            && source.shape().iter().zip(index.shape()).all(|(have, reach)| reach <= have);
        if !fits && index.layout.numel() > 0 {
            return Err(Error::shape(
                name,
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
        match self.combine {
            Combine::Replace => Saves::input(1),
            Combine::Add => Saves::input(1).when(needs.has(2)),
            _ => Saves::input(0).and(Saves::input(1)).and(Saves::input(2)).and(Saves::output(0)),
        }
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::scatter(launch, self.dim, self.combine)
    }

    fn cuda_workspace_bytes(&self, _gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cuda::scatter_workspace_bytes(inputs, outputs, self.dim, self.combine)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::scatter(launch, self.dim, self.combine)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, dim) = (backward.grad()?, self.dim as i64);
        let (own, source) = match self.combine {
            Combine::Replace => {
                let index = backward.input(1)?;
                let own = backward.for_input(0, || grad.scatter(dim, index, 0.0, None))?;
                (own, backward.for_input(2, || grad.gather(dim, index))?)
            }
            Combine::Add => {
                let own = backward.for_input(0, || Ok(grad.clone()))?;
                (own, backward.for_input(2, || grad.gather(dim, backward.input(1)?))?)
            }
            Combine::Multiply => product_gradients(backward, dim)?,
            Combine::Least | Combine::Greatest => extreme_gradients(backward, dim)?,
        };
        let source = source.map(|part| widened(&part, backward.inputs[2].shape())).transpose()?;
        Ok(smallvec::smallvec![own, None, source])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradient of a source of which only the index's part was read: zeros around it.
fn widened(part: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if part.shape() == shape {
        return Ok(part.clone());
    }
    let sizes = shape.iter().zip(part.shape()).rev();
    let pad: Vec<i64> = sizes.flat_map(|(&whole, &has)| [0, whole as i64 - has as i64]).collect();
    part.constant_pad_nd(&pad, 0)
}

/// The part of a source that the index reaches.
fn reached(source: &Tensor, index: &Tensor) -> Result<Tensor> {
    let mut part = source.clone();
    for (dim, &size) in index.shape().iter().enumerate() {
        if part.shape()[dim] != size {
            part = part.narrow(dim as i64, 0, size as i64)?;
        }
    }
    Ok(part)
}

type Pair = (Option<Tensor>, Option<Tensor>);

/// Of products: the result over the factor, or the product of the others where the factor is the
/// only 0.
fn product_gradients(backward: &Backward<'_>, dim: i64) -> Result<Pair> {
    let (grad, x, index) = (backward.grad()?, backward.input(0)?, backward.input(1)?);
    let source = reached(backward.input(2)?, index)?;
    let multiplied = |x: &Tensor, source: &Tensor| {
        x.scatter_reduce(dim, index, source, super::Reduce::Prod, true)
    };
    let own = backward.for_input(0, || {
        let without = x.masked_fill(&x.eq(0)?, 1)?;
        grad.mul(&multiplied(&without, &source)?)?.div(&without)
    })?;
    let theirs = backward.for_input(2, || {
        let zero = source.eq(0)?;
        let zeros = x.zeros_like()?.scatter_add(dim, index, &zero.to(x.dtype())?)?;
        let only = Tensor::where_(&zero, &zeros.gather(dim, index)?.eq(1)?, false)?;
        let others = multiplied(x, &source.masked_fill(&only, 1)?)?;
        let from_others = grad.mul(&others)?.gather(dim, index)?;
        let result = backward.output(0)?;
        let divided = grad.mul(result)?.gather(dim, index)?.div(&source.masked_fill(&zero, 1)?)?;
        Tensor::where_(&only, &from_others, &divided)
    })?;
    Ok((own, theirs))
}

/// Of extremes: shared evenly by those that are it.
fn extreme_gradients(backward: &Backward<'_>, dim: i64) -> Result<Pair> {
    let (grad, x, index) = (backward.grad()?, backward.input(0)?, backward.input(1)?);
    let (source, result) = (reached(backward.input(2)?, index)?, backward.output(0)?);
    let is_it = |x: &Tensor, best: &Tensor| x.eq(best)?.to(grad.dtype());
    let (own, theirs) = (is_it(x, result)?, is_it(&source, &result.gather(dim, index)?)?);
    let share = grad.div(&own.scatter_add(dim, index, &theirs)?)?;
    Ok((
        backward.for_input(0, || own.mul(&share))?,
        backward.for_input(2, || theirs.mul(&share.gather(dim, index)?))?,
    ))
}

/// An index must have the rank of what it indexes, and not be larger in the dimensions other than
/// `dim`. Of an index without elements PyTorch asks nothing.
fn check_index(op: &'static str, x: &Meta, index: &Meta, dim: usize) -> Result<()> {
    let (own, other) = (x.shape(), index.shape());
    let fits = own.len() == other.len() && (0..own.len()).all(|d| d == dim || other[d] <= own[d]);
    if !fits && index.layout.numel() > 0 {
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

const fn gathering(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        out: Out::Exact,
        cuda: OnCuda::Kernels(&source_files::INDEX),
        inputs: &[Input::Given, Input::Index],
        ..info(name, signatures)
    }
}

const fn scattering(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        in_place: true,
        out: Out::Exact,
        cuda: OnCuda::Kernels(&source_files::SCATTER),
        inputs: &[Input::Given, Input::Index, Input::Given],
        ..info(name, signatures)
    }
}

pub(crate) static GATHER: OpInfo = gathering(
    "gather",
    &["gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"],
);
pub(crate) static INDEX_SELECT: OpInfo =
    gathering("index_select", &["index_select(Tensor self, int dim, Tensor index) -> Tensor"]);
pub(crate) static SCATTER: OpInfo = scattering(
    "scatter",
    &[
        "scatter(Tensor self, int dim, Tensor index, Tensor|Scalar src, *, str? reduce=None) -> Tensor",
        "scatter(Tensor self, int dim, Tensor index, Scalar value, *, str? reduce=None) -> Tensor",
    ],
);
pub(crate) static SCATTER_ADD: OpInfo = scattering(
    "scatter_add",
    &["scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"],
);
pub(crate) static SCATTER_REDUCE: OpInfo = scattering(
    "scatter_reduce",
    &[
        "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    ],
);
pub(crate) static INDEX_ADD: OpInfo = scattering(
    "index_add",
    &["index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"],
);
pub(crate) static INDEX_COPY: OpInfo = scattering(
    "index_copy",
    &["index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"],
);
pub(crate) static INDEX_FILL: OpInfo = OpInfo {
    out: Out::None,
    cuda: OnCuda::Composed,
    ..scattering(
        "index_fill",
        &["index_fill(Tensor self, int dim, Tensor index, Tensor|Scalar value) -> Tensor"],
    )
};
pub(crate) static INDEX_REDUCE: OpInfo = scattering(
    "index_reduce",
    &[
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    ],
);
