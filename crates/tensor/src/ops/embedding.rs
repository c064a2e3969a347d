//! Rows of a table by index: one an index (`embedding`), or reduced bag by bag (`embedding_bag`).
//! Gradients of the table are dense, and the same bits in every run.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::{KernelSource, Properties, source_files};
use smallvec::SmallVec;

use super::nn::check_float;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::{Dest, first};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Input, Metas, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::embedding as cpu;
use plimsoll_kernels::cpu::embedding_bag::{self as bags, BagArgs, BagMode};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

fn check_table(info: &'static OpInfo, table: &Meta) -> Result<[usize; 2]> {
    match *table.shape() {
        [rows, width] => Ok([rows, width]),
        ref other => Err(Error::shape(
            info.name,
            format!("the table of embeddings needs two dimensions, and has the shape {other:?}"),
        )),
    }
}

/// [table, indices] -> a row an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedding {
    /// The index whose row gets no gradient.
    pub(crate) padding: Option<usize>,
    /// Whether gradients are divided by how often a row was taken.
    pub(crate) by_frequency: bool,
}

impl Operation for Embedding {
    fn info(&self) -> &'static OpInfo {
        &EMBEDDING
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let [_, width] = check_table(&EMBEDDING, inputs[0])?;
        let mut shape = Dims::from(inputs[1].shape());
        shape.push(width);
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::embedding(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::embedding(launch)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?.contiguous()?;
        let op = self.backward(backward, false);
        let own = apply_one(&op, &[&grad, backward.input(1)?], Site::in_force())?;
        Ok(smallvec::smallvec![Some(own), None])
    }

    /// A table whose rows are scores too, as in a language model, has another gradient already.
    fn adds_to_input(&self) -> bool {
        !self.by_frequency
    }

    fn vjp_onto(&self, backward: &Backward<'_>, total: &Tensor) -> Result<Grads> {
        let grad = backward.grad()?.contiguous()?;
        let (op, inputs) = (self.backward(backward, true), [&grad, backward.input(1)?]);
        apply(&op, &inputs, Dest::Mutating(&[total]), Site::in_force())?;
        Ok(smallvec::smallvec![None, None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Embedding {
    fn backward(self, backward: &Backward<'_>, added: bool) -> EmbeddingBackward {
        EmbeddingBackward { of: self, rows: backward.inputs[0].shape()[0], added }
    }
}

/// [grad, indices] -> the gradient of the table; `added` to a tensor that is there, or a new one.
#[derive(Clone, Copy, Debug)]
struct EmbeddingBackward {
    of: Embedding,
    rows: usize,
    added: bool,
}

impl Operation for EmbeddingBackward {
    fn info(&self) -> &'static OpInfo {
        &EMBEDDING_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        if self.added {
            return Ok(Inferred::Exact(Metas::new()));
        }
        let width = inputs[0].shape().last().copied().unwrap_or(0);
        Ok(Inferred::one(Meta::contiguous(&[self.rows, width], inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn workspace_bytes(&self, _inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::embedding_workspace_bytes(self.rows, self.of.by_frequency)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::embedding_backward(launch, self.of.padding, self.of.by_frequency, self.added)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::embedding_backward_workspace_bytes(inputs, self.rows)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::embedding_backward(launch, self.of.padding, self.of.by_frequency, self.added)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, indices) = (backward.grad()?.contiguous()?, backward.input(1)?);
        let rows = apply_one(&self.of, &[&grad, indices], Site::in_force())?;
        let own = match self.of.padding {
            Some(padding) => {
                Tensor::where_(&indices.ne(padding as i64)?.unsqueeze(-1)?, &rows, 0.0)?
            }
            None => rows,
        };
        Ok(smallvec::smallvec![Some(own), None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// [table, indices, offsets, weights?] -> a row a bag; for the backward of maxima also the index
/// that each element is from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbeddingBag {
    pub(crate) args: BagArgs,
    pub(crate) by_frequency: bool,
}

impl Operation for EmbeddingBag {
    fn info(&self) -> &'static OpInfo {
        &EMBEDDING_BAG
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        check_float(&EMBEDDING_BAG, inputs[0])?;
        let [_, width] = check_table(&EMBEDDING_BAG, inputs[0])?;
        let (&[_], &[offsets]) = (inputs[1].shape(), inputs[2].shape()) else {
            return Err(Error::invalid_argument(format!(
                "indices and offsets need one dimension each, and have the shapes {:?} and {:?}",
                inputs[1].shape(),
                inputs[2].shape()
            ))
            .in_operation(EMBEDDING_BAG.name));
        };
        if let Some(weights) = inputs.get(3).filter(|_| self.args.weighted)
            && (weights.shape() != inputs[1].shape() || weights.dtype != inputs[0].dtype)
        {
            return Err(Error::invalid_argument(format!(
                    "the samples' weights must have the indices' shape {:?} and the table's dtype {}, and have {:?} \
                     and {}",
                    inputs[1].shape(),
                    inputs[0].dtype,
                    weights.shape(),
                    weights.dtype
                ))
                .in_operation(EMBEDDING_BAG.name));
        }
        let last = usize::from(self.args.include_last_offset);
        let shape = [offsets.saturating_sub(last), width];
        let mut metas: Metas = smallvec::smallvec![Meta::contiguous(&shape, inputs[0].dtype)?];
        if self.args.mode == BagMode::Max && needs.any() {
            metas.push(Meta::contiguous(&shape, DType::I64)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let weights = self.args.weighted;
        Saves::input(1)
            .and(Saves::input(2))
            .and(Saves::input(0).when(weights && needs.has(3)))
            .and(Saves::input(3).when(weights && needs.has(0)))
            .and(Saves::output(1).when(self.args.mode == BagMode::Max))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        bags::embedding_bag(launch, self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::embedding_bag(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?.contiguous()?;
        let (indices, offsets) = (backward.input(1)?, backward.input(2)?);
        let rows = backward.inputs[0].shape()[0];
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        let apply_backward = |of_weights: bool, last: Option<&Tensor>| {
            let op = EmbeddingBagBackward { of: *self, rows, of_weights };
            let mut inputs: SmallVec<[&Tensor; 4]> = smallvec::smallvec![&grad, indices, offsets];
            inputs.extend(last);
            Ok(first(apply(&op, &inputs, Dest::New, Site::in_force())?))
        };
        grads[0] = backward.for_input(0, || {
            let last = match self.args.mode {
                BagMode::Max => Some(backward.output(1)?),
                _ if self.args.weighted => Some(backward.input(3)?),
                _ => None,
            };
            apply_backward(false, last)
        })?;
        if self.args.weighted {
            grads[3] = backward.for_input(3, || apply_backward(true, Some(backward.input(0)?)))?;
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// [grad, indices, offsets, weights or origins or table] -> the gradient of the table or, with
/// `of_weights`, of the samples' weights.
#[derive(Clone, Copy, Debug)]
struct EmbeddingBagBackward {
    of: EmbeddingBag,
    rows: usize,
    of_weights: bool,
}

impl Operation for EmbeddingBagBackward {
    fn info(&self) -> &'static OpInfo {
        &EMBEDDING_BAG_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let dtype = inputs[0].dtype;
        let meta = match self.of_weights {
            true => Meta::contiguous(inputs[1].shape(), dtype)?,
            false => Meta::contiguous(&[self.rows, inputs[0].shape()[1]], dtype)?,
        };
        Ok(Inferred::one(meta))
    }

    fn workspace_bytes(&self, _inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        match self.of_weights {
            true => 0,
            false => cpu::embedding_workspace_bytes(self.rows, self.of.by_frequency),
        }
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match self.of_weights {
            true => bags::embedding_bag_weights_backward(launch, self.of.args),
            false => bags::embedding_bag_backward(launch, self.of.args, self.of.by_frequency),
        }
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        match self.of_weights {
            true => 0,
            false => cuda::embedding_bag_backward_workspace_bytes(inputs, self.of.args, self.rows),
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        match self.of_weights {
            true => cuda::embedding_bag_weights_backward(launch, self.of.args),
            false => cuda::embedding_bag_backward(launch, self.of.args, self.of.by_frequency),
        }
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(
    name: &'static str,
    signatures: &'static [&'static str],
    kernels: &'static KernelSource,
) -> OpInfo {
    OpInfo {
        name,
        home: Home::Functional,
        family: "embedding",
        signatures,
        differentiable: true,
        cuda: OnCuda::Kernels(kernels),
        dtypes: DTypes::FLOATS,
        inputs: &[Input::Given, Input::Index, Input::Index, Input::Given],
        ..OpInfo::BARE
    }
}

static EMBEDDING: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..info(
        "embedding",
        &[
            "embedding(Tensor self, Tensor indices, int? padding_idx=None, bool scale_grad_by_freq=False) -> Tensor",
        ],
        &source_files::INDEX,
    )
};
static EMBEDDING_BAG: OpInfo = info(
    "embedding_bag",
    &[
        "embedding_bag(Tensor self, Tensor indices, Tensor offsets, str bag_mode='mean', bool scale_grad_by_freq=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
    ],
    &source_files::EMBEDDING_BAG,
);
/// Internal: reached only through the derivatives.
static EMBEDDING_BACKWARD: OpInfo = info("embedding_backward", &[], &source_files::SCATTER);
static EMBEDDING_BAG_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    ..info("embedding_bag_backward", &[], &source_files::EMBEDDING_BAG)
};

pub(crate) static OPS: &[&OpInfo] = &[&EMBEDDING, &EMBEDDING_BAG];
