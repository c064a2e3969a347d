//! The rows of `isin` and `one_hot`. They have no kernels; the methods are in
//! `api/membership.rs`.

use plimsoll_core::DType;

use crate::operation::{DTypes, Home, OnCuda, OpInfo, Out};

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "membership",
        signatures,
        cuda: OnCuda::Composed,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static ISIN: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    out: Out::Exact,
    ..composed(
        "isin",
        &[
            "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        ],
    )
};
static ONE_HOT: OpInfo = OpInfo {
    home: Home::Functional,
    dtypes: DTypes::of(&[DType::I64]),
    ..composed("one_hot", &["one_hot(Tensor tensor, int num_classes=-1) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[&ISIN, &ONE_HOT];
