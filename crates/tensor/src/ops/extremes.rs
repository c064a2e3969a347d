//! The rows of `max`, `min` and `aminmax`, which are composed of reductions and of `gather`.

use crate::operation::{DTypes, OnCuda, OpInfo, Out};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "extremes",
        signatures,
        differentiable: true,
        out: Out::Copied,
        cuda: OnCuda::Composed,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static MAX: OpInfo = info(
    "max",
    &[
        "max(Tensor self) -> Tensor",
        "max(Tensor self, Tensor other) -> Tensor",
        "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ],
);
static MIN: OpInfo = info(
    "min",
    &[
        "min(Tensor self) -> Tensor",
        "min(Tensor self, Tensor other) -> Tensor",
        "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ],
);
static AMINMAX: OpInfo = OpInfo {
    out: Out::Exact,
    ..info(
        "aminmax",
        &["aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[&MAX, &MIN, &AMINMAX];
