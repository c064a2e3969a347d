//! Comparisons of two operands, of which one may be a host number: a bool for each element. They
//! have no derivative.

use std::sync::Arc;

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::source_files;

use super::elementwise;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Promotion};
use plimsoll_kernels::cpu::compare as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

pub(crate) use cpu::Comparison;

/// One comparison with input 1, or with a host number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compare {
    pub(crate) comparison: Comparison,
    pub(crate) number: Option<Scalar>,
}

impl Compare {
    /// The number beside inputs of `dtype`.
    fn number_of(&self, dtype: DType) -> Option<Scalar> {
        self.number.map(|number| elementwise::rounded(number, dtype))
    }
}

impl Operation for Compare {
    fn info(&self) -> &'static OpInfo {
        match self.comparison {
            Comparison::Eq => &EQ,
            Comparison::Ne => &NE,
            Comparison::Lt => &LT,
            Comparison::Le => &LE,
            Comparison::Gt => &GT,
            Comparison::Ge => &GE,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.info().name, inputs, DType::Bool)
    }

    fn number(&self) -> Option<Scalar> {
        self.number
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match self.number_of(launch.inputs[0].dtype()) {
            Some(value) => cpu::compare_scalar(launch, self.comparison, value),
            None => cpu::compare(launch, self.comparison),
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        // In the order of the kernels.
        let number = self.number_of(launch.inputs[0].dtype());
        cuda::compare(launch, self.comparison as i32, number)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "compare",
        signatures,
        in_place: true,
        out: Out::Cast,
        elementwise: true,
        cuda: OnCuda::Kernels(&source_files::COMPARE),
        inputs: &[Input::Operand],
        promotion: Promotion::Common,
        ..OpInfo::BARE
    }
}

static EQ: OpInfo = info("eq", &["eq(Tensor self, Tensor|Scalar other) -> Tensor"]);
static NE: OpInfo = info("ne", &["ne(Tensor self, Tensor|Scalar other) -> Tensor"]);
static LT: OpInfo = info("lt", &["lt(Tensor self, Tensor|Scalar other) -> Tensor"]);
static LE: OpInfo = info("le", &["le(Tensor self, Tensor|Scalar other) -> Tensor"]);
static GT: OpInfo = info("gt", &["gt(Tensor self, Tensor|Scalar other) -> Tensor"]);
static GE: OpInfo = info("ge", &["ge(Tensor self, Tensor|Scalar other) -> Tensor"]);

pub(crate) static OPS: &[&OpInfo] = &[&EQ, &NE, &LT, &LE, &GT, &GE];
