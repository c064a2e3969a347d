//! The rows of norms that give their moments too. They have no kernels; the methods are in
//! `api/native_norm.rs`.

use crate::operation::{DTypes, OnCuda, OpInfo, Out};

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "native_norm",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        dtypes: DTypes::FLOATS,
        ..OpInfo::BARE
    }
}

static LAYER: OpInfo = composed(
    "native_layer_norm",
    &[
        "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    ],
);
static GROUP: OpInfo = composed(
    "native_group_norm",
    &[
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    ],
);
static BATCH: OpInfo = OpInfo {
    out: Out::Cast,
    ..composed(
        "native_batch_norm",
        &[
            "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        ],
    )
};
static BATCH_LEGIT: OpInfo = OpInfo {
    out: Out::Cast,
    ..composed(
        "_native_batch_norm_legit",
        &[
            "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
            "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        ],
    )
};
static BATCH_WITH_UPDATE: OpInfo = composed(
    "_batch_norm_with_update",
    &[
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    ],
);

pub(crate) static OPS: &[&OpInfo] = &[&LAYER, &GROUP, &BATCH, &BATCH_LEGIT, &BATCH_WITH_UPDATE];
