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
        "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "max(Tensor self, Tensor other) -> Tensor",
    ],
);
static MIN: OpInfo = info(
    "min",
    &[
        "min(Tensor self) -> Tensor",
        "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "min(Tensor self, Tensor other) -> Tensor",
    ],
);
static AMINMAX: OpInfo = info(
    "aminmax",
    &["aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"],
);

pub(crate) static OPS: &[&OpInfo] = &[&MAX, &MIN, &AMINMAX];
