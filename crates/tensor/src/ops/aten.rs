//! The rows of what PyTorch keeps for its own compositions. They have no kernels; the methods are
//! in `api/aten.rs`.

use crate::operation::{DTypes, OnCuda, OpInfo, Out};

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "aten",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static SOFTMAX_BACKWARD_DATA: OpInfo = OpInfo {
    dtypes: DTypes::FLOATS,
    out: Out::Exact,
    ..composed(
        "_softmax_backward_data",
        &[
            "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, DType input_dtype) -> Tensor",
        ],
    )
};
static SAFE_SOFTMAX: OpInfo = OpInfo {
    dtypes: DTypes::FLOATS,
    ..composed(
        "_safe_softmax",
        &["_safe_softmax(Tensor self, int dim, DType? dtype=None) -> Tensor"],
    )
};
static NATIVE_DROPOUT_BACKWARD: OpInfo = OpInfo {
    out: Out::Cast,
    ..composed(
        "native_dropout_backward",
        &["native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"],
    )
};
static CHUNK_CAT: OpInfo = OpInfo {
    out: Out::Cast,
    ..composed("_chunk_cat", &["_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor"])
};
static UNSAFE_MASKED_INDEX: OpInfo = composed(
    "_unsafe_masked_index",
    &["_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"],
);
static UNSAFE_MASKED_INDEX_PUT_ACCUMULATE: OpInfo = composed(
    "_unsafe_masked_index_put_accumulate",
    &[
        "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    ],
);

pub(crate) static OPS: &[&OpInfo] = &[
    &SOFTMAX_BACKWARD_DATA,
    &SAFE_SOFTMAX,
    &NATIVE_DROPOUT_BACKWARD,
    &CHUNK_CAT,
    &UNSAFE_MASKED_INDEX,
    &UNSAFE_MASKED_INDEX_PUT_ACCUMULATE,
];
