//! Reading and writing where index tensors say: `x[i, :, j]` here, `gather` and the scatters in
//! `along.rs`, `nonzero` in `nonzero.rs`. The forms that users write (masks, gaps in the list) are
//! turned into these in `api/index.rs`.

pub(crate) mod along;
pub(crate) mod nonzero;

use std::sync::Arc;

use plimsoll_core::{Dims, Error, Layout, Result, broadcast_shapes};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::elementwise::output_layout;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::index as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs [x, index tensors...]: x at every combination of the index tensors (int64), which stand
/// at `dims`, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) dims: Dims,
}

impl Index {
    /// Like an elementwise result of x, which does not move along the indices' dimensions, and of
    /// the indices, which move along no other.
    fn layout(&self, inputs: &[&Meta], shape: &[usize]) -> Result<Layout> {
        let x = &inputs[0].layout;
        let start = common_start(&self.dims);
        let common = shape.len() + self.dims.len() - x.rank();
        let mut metas: SmallVec<[Meta; 4]> = SmallVec::new();
        let mut strides: Dims = (0..x.rank())
            .filter(|dim| !self.dims.contains(dim))
            .map(|dim| x.strides()[dim])
            .collect();
        strides.insert_many(start, std::iter::repeat_n(0, common));
        metas.push(Meta { layout: Layout::strided(shape, &strides, 0)?, dtype: inputs[0].dtype });
        for index in &inputs[1..] {
            let index_layout = index.layout.broadcast_to(&shape[start..start + common])?;
            let mut strides = Dims::from_elem(0, shape.len() - common);
            strides.insert_from_slice(start, index_layout.strides());
            metas.push(Meta { layout: Layout::strided(shape, &strides, 0)?, dtype: index.dtype });
        }
        let metas: SmallVec<[&Meta; 4]> = metas.iter().collect();
        output_layout(INDEX.name, &metas)
    }
}

impl Operation for Index {
    fn info(&self) -> &'static OpInfo {
        &INDEX
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let shape = indexed_shape(INDEX.name, inputs[0].shape(), &self.dims, &inputs[1..])?;
        let layout = match inputs.iter().all(|meta| meta.layout.is_contiguous()) {
            true => Layout::contiguous(&shape),
            false => self.layout(inputs, &shape),
        };
        let layout = layout.map_err(|e| e.in_operation(INDEX.name))?;
        Ok(Inferred::one(Meta { layout, dtype: inputs[0].dtype }))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        save_indices(1, self.dims.len())
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::index_workspace_bytes(inputs)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::index(launch, &self.dims)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::index_workspace_bytes(inputs)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::index(launch, &self.dims)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let zeros = Tensor::zeros_on(grad.entry(), &backward.inputs[0])?;
        let op = IndexPut { dims: self.dims.clone(), accumulate: true };
        let result = with_indices(&op, &[&zeros, grad], backward, 1)?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = Some(result);
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// Inputs [x, values, index tensors...]: x with the values, which broadcast, written or added where
/// [`Index`] would read.
#[derive(Clone, Debug)]
pub(crate) struct IndexPut {
    pub(crate) dims: Dims,
    pub(crate) accumulate: bool,
}

impl Operation for IndexPut {
    fn info(&self) -> &'static OpInfo {
        &INDEX_PUT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let name = INDEX_PUT.name;
        let (x, values) = (inputs[0], inputs[1]);
        if x.dtype != values.dtype {
            return Err(Error::dtype(
                name,
                format!(
                    "the values are {} and the target {}; convert the values with `to`",
                    values.dtype, x.dtype
                ),
            ));
        }
        let places = indexed_shape(name, x.shape(), &self.dims, &inputs[2..])?;
        let both = broadcast_shapes(name, &[values.shape(), &places]);
        if both.is_err() || both.is_ok_and(|shape| shape != places) {
            return Err(Error::shape(
                name,
                format!(
                    "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
                    values.shape(),
                    places.as_slice()
                ),
            ));
        }
        Ok(Inferred::one(Meta { layout: output_layout(name, &[x])?, dtype: x.dtype }))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        save_indices(2, self.dims.len())
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::index_put_workspace_bytes(inputs)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::index_put(launch, &self.dims, self.accumulate)
    }

    fn cuda_workspace_bytes(&self, _gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cuda::index_put_workspace_bytes(inputs, outputs, &self.dims, self.accumulate)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::index_put(launch, &self.dims, self.accumulate)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = backward.for_input(0, || {
            if self.accumulate {
                return Ok(grad.clone());
            }
            // What was overwritten has no part in the result.
            let zero = Tensor::zeros(&[], (grad.dtype(), grad.device()))?;
            let op = IndexPut { dims: self.dims.clone(), accumulate: false };
            with_indices(&op, &[grad, &zero], backward, 2)
        })?;
        grads[1] = backward.for_input(1, || {
            let read = with_indices(&Index { dims: self.dims.clone() }, &[grad], backward, 2)?;
            read.sum_to(backward.inputs[1].shape())
        })?;
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// Backward reads only the index tensors, which follow `first` other inputs.
fn save_indices(first: usize, count: usize) -> Saves {
    (first..first + count).fold(Saves::NOTHING, |saves, index| saves.and(Saves::input(index)))
}

/// `op` on `leading`, followed by the index tensors that backward saved from position `first` on.
#[track_caller]
fn with_indices(
    op: &dyn Operation,
    leading: &[&Tensor],
    backward: &Backward<'_>,
    first: usize,
) -> Result<Tensor> {
    let mut inputs: SmallVec<[&Tensor; 6]> = leading.iter().copied().collect();
    for index in first..backward.inputs.len() {
        inputs.push(backward.input(index)?);
    }
    apply_one(op, &inputs, Site::caller())
}

/// Where the index tensors' common shape stands in the result.
fn common_start(dims: &[usize]) -> usize {
    let adjacent = dims.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if adjacent { dims.first().copied().unwrap_or(0) } else { 0 }
}

/// The shape of what index tensors at `dims` read from `shape`: their common shape takes the place
/// of adjacent dimensions, and goes to the front where others lie between them, as in NumPy.
fn indexed_shape(
    op: &'static str,
    shape: &[usize],
    dims: &[usize],
    indices: &[&Meta],
) -> Result<Dims> {
    let shapes: SmallVec<[&[usize]; 4]> = indices.iter().map(|meta| meta.shape()).collect();
    let misfit = || {
        let given = shapes.iter().map(|shape| format!("{shape:?}")).collect::<Vec<_>>().join(", ");
        let why = "shape mismatch: indexing tensors could not be broadcast together with shapes";
        Error::index(op, format!("{why} {given}"))
    };
    let common = broadcast_shapes(op, &shapes).map_err(|_| misfit())?;
    let start = common_start(dims);
    let mut result: Dims =
        (0..shape.len()).filter(|dim| !dims.contains(dim)).map(|dim| shape[dim]).collect();
    result.insert_from_slice(start, &common);
    Ok(result)
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "index",
        signatures,
        differentiable: true,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static INDEX: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::INDEX),
    inputs: &[Input::Given, Input::Index],
    ..info("index", &["index(Tensor self, Tensor?[] indices) -> Tensor"])
};
static INDEX_PUT: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::SCATTER),
    in_place: true,
    inputs: &[Input::Given, Input::Operand, Input::Index],
    ..info(
        "index_put",
        &[
            "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        ],
    )
};
/// How several values for one place are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their mean.
    Mean,
    /// The largest.
    Amax,
    /// The smallest.
    Amin,
}

impl std::str::FromStr for Reduce {
    type Err = Error;

    fn from_str(word: &str) -> Result<Reduce> {
        match word {
            "sum" | "add" => Ok(Reduce::Sum),
            "prod" | "multiply" => Ok(Reduce::Prod),
            "mean" => Ok(Reduce::Mean),
            "amax" => Ok(Reduce::Amax),
            "amin" => Ok(Reduce::Amin),
            _ => Err(Error::shape(
                "scatter",
                format!("there is no reduce {word:?}; use sum, prod, mean, amax or amin"),
            )),
        }
    }
}

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

/// Made of `nonzero` and `index`.
static MASKED_SELECT: OpInfo = OpInfo {
    out: Out::Exact,
    ..composed("masked_select", &["masked_select(Tensor self, Tensor mask) -> Tensor"])
};
/// Made of `nonzero` and `index_put`.
static MASKED_SCATTER: OpInfo = OpInfo {
    in_place: true,
    ..composed(
        "masked_scatter",
        &["masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"],
    )
};
static TAKE: OpInfo =
    OpInfo { out: Out::Exact, ..composed("take", &["take(Tensor self, Tensor index) -> Tensor"]) };
static PUT: OpInfo = OpInfo {
    in_place: true,
    ..composed(
        "put",
        &["put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"],
    )
};
static TAKE_ALONG_DIM: OpInfo = OpInfo {
    out: Out::Exact,
    ..composed(
        "take_along_dim",
        &["take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"],
    )
};
static ARGWHERE: OpInfo =
    OpInfo { differentiable: false, ..composed("argwhere", &["argwhere(Tensor self) -> Tensor"]) };
static NONZERO_STATIC: OpInfo = OpInfo {
    differentiable: false,
    out: Out::Exact,
    ..composed(
        "nonzero_static",
        &["nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor"],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[
    &along::GATHER,
    &along::INDEX_SELECT,
    &along::SCATTER,
    &along::SCATTER_ADD,
    &along::SCATTER_REDUCE,
    &along::INDEX_ADD,
    &along::INDEX_COPY,
    &along::INDEX_FILL,
    &along::INDEX_REDUCE,
    &INDEX,
    &INDEX_PUT,
    &nonzero::NONZERO,
    &MASKED_SELECT,
    &MASKED_SCATTER,
    &TAKE,
    &PUT,
    &TAKE_ALONG_DIM,
    &ARGWHERE,
    &NONZERO_STATIC,
];
