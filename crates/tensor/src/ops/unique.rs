//! Distinct elements: runs of equal rows, and the order that brings equal rows together. How many
//! there are only the data tells.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Properties, source_files};

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Metas, Needs, OnCuda, OpInfo, Operation};
use plimsoll_kernels::cpu::sort as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Outputs [the first row of each run, the run of every row, the runs' lengths] of a contiguous
/// matrix; those that are not wanted have no elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) ids: bool,
    pub(crate) lengths: bool,
}

impl Runs {
    fn outputs(self, rows: usize, width: usize, runs: usize, dtype: DType) -> Result<Metas> {
        let one = |wanted: bool, len: usize| {
            Meta::contiguous(&[if wanted { len } else { 0 }], DType::I64)
        };
        let first = Meta::contiguous(&[runs, width], dtype)?;
        Ok(smallvec::smallvec![first, one(self.ids, rows)?, one(self.lengths, runs)?])
    }
}

impl Operation for Runs {
    fn info(&self) -> &'static OpInfo {
        &UNIQUE_CONSECUTIVE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (rows, width) = (inputs[0].shape()[0], inputs[0].shape()[1]);
        Ok(Inferred::AtMost(self.outputs(rows, width, rows, inputs[0].dtype)?))
    }

    fn measure(&self, launch: &CpuLaunch<'_>) -> Result<Metas> {
        let matrix = launch.inputs[0];
        let (rows, width) = (matrix.shape()[0], matrix.shape()[1]);
        self.outputs(rows, width, cpu::count_runs(launch)?, matrix.dtype())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::runs(launch)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::runs_workspace_bytes(inputs[0])
    }

    fn cuda_measure(&self, launch: &CudaLaunch<'_>) -> Result<Metas> {
        let matrix = launch.inputs[0];
        let (rows, width) = (matrix.shape()[0], matrix.shape()[1]);
        self.outputs(rows, width, cuda::runs_count(launch)?, matrix.dtype())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::runs(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The elements of a contiguous line in order, without their positions. The values of elements that
/// are equal but for their bits, zeros and NaN, may be another's of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortValues;

impl Operation for SortValues {
    fn info(&self) -> &'static OpInfo {
        &UNIQUE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::sort_values_workspace_bytes(inputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::sort_values(launch)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::sort_values_workspace_bytes(inputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::sort_values(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The positions of a contiguous matrix's rows in the order of their elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOrder;

impl Operation for RowOrder {
    fn info(&self) -> &'static OpInfo {
        &UNIQUE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(&inputs[0].shape()[..1], DType::I64)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::row_order(launch)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::row_order_workspace_bytes(inputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::row_order(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "unique",
        signatures,
        cuda: OnCuda::Kernels(&source_files::RUNS),
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static UNIQUE: OpInfo = info(
    "unique",
    &[
        "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor[]",
    ],
);
static UNIQUE_CONSECUTIVE: OpInfo = info(
    "unique_consecutive",
    &[
        "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor[]",
    ],
);

pub(crate) static OPS: &[&OpInfo] = &[&UNIQUE, &UNIQUE_CONSECUTIVE];
