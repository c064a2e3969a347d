//! Where numbers belong in sorted sequences, and how many fall into each bin.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Properties, source_files};

use crate::cuda::{self, CudaLaunch};
use crate::operation::{DTypes, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use plimsoll_kernels::cpu::search as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Inputs [sequences, values], contiguous: for each value the place before which it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchSorted {
    pub(crate) right: bool,
    /// int64 or int32.
    pub(crate) dtype: DType,
}

impl Operation for SearchSorted {
    fn info(&self) -> &'static OpInfo {
        &SEARCHSORTED
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), self.dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::searchsorted(launch, self.right)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::searchsorted(launch, self.right)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Inputs [x (, edges) (, weights)], contiguous: what each of `count` bins has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Histogram {
    pub(crate) bins: cpu::Bins,
    pub(crate) count: usize,
    pub(crate) weighted: bool,
    pub(crate) dtype: DType,
}

impl Operation for Histogram {
    fn info(&self) -> &'static OpInfo {
        if self.bins == cpu::Bins::Numbered { &BINCOUNT } else { &HISTC }
    }

    fn infer(&self, _inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(&[self.count], self.dtype)?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::histogram_workspace_bytes(inputs[0], self.count, outputs[0].dtype)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::histogram(launch, self.bins, self.weighted)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::histogram_workspace_bytes(inputs[0], self.count, self.weighted)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::histogram(launch, self.bins, self.weighted)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "search",
        signatures,
        out: Out::Copied,
        cuda: OnCuda::Kernels(&source_files::SEARCH),
        dtypes: DTypes::NUMBERS,
        ..OpInfo::BARE
    }
}

static SEARCHSORTED: OpInfo = info(
    "searchsorted",
    &[
        "searchsorted(Tensor sorted_sequence, Tensor|Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    ],
);
static BUCKETIZE: OpInfo = info(
    "bucketize",
    &[
        "bucketize(Tensor|Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    ],
);
static BINCOUNT: OpInfo = OpInfo {
    out: Out::None,
    dtypes: DTypes::INTEGERS,
    ..info("bincount", &["bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor"])
};
static HISTC: OpInfo = OpInfo {
    dtypes: DTypes::FLOATS,
    ..info("histc", &["histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"])
};
static HISTOGRAM: OpInfo = OpInfo {
    dtypes: DTypes::of(&[DType::F32, DType::F64]),
    ..info(
        "histogram",
        &[
            "histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
            "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&SEARCHSORTED, &BUCKETIZE, &BINCOUNT, &HISTC, &HISTOGRAM];
