//! Tensors cut along a dimension: rows only. All are made of `narrow`, `slice` and `select`, in
//! `api/split.rs`.

use crate::operation::{OnCuda, OpInfo};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "split",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        ..OpInfo::BARE
    }
}

static SPLIT: OpInfo = info(
    "split",
    &[
        "split(Tensor self, int split_size, int dim=0) -> Tensor[]",
        "split(Tensor self, int[] split_size, int dim=0) -> Tensor[]",
        "split(Tensor tensor, int split_size_or_sections, int dim=0) -> Tensor[]",
        "split(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]",
    ],
);
static SPLIT_WITH_SIZES: OpInfo = info(
    "split_with_sizes",
    &["split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"],
);
static CHUNK: OpInfo = info("chunk", &["chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"]);
static UNSAFE_CHUNK: OpInfo =
    info("unsafe_chunk", &["unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"]);
static UNSAFE_SPLIT: OpInfo =
    info("unsafe_split", &["unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]"]);
static UNSAFE_SPLIT_WITH_SIZES: OpInfo = info(
    "unsafe_split_with_sizes",
    &["unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"],
);
static TENSOR_SPLIT: OpInfo = info(
    "tensor_split",
    &[
        "tensor_split(Tensor self, int sections, int dim=0) -> Tensor[]",
        "tensor_split(Tensor self, int[] indices, int dim=0) -> Tensor[]",
        "tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    ],
);
static HSPLIT: OpInfo = info(
    "hsplit",
    &[
        "hsplit(Tensor self, int sections) -> Tensor[]",
        "hsplit(Tensor self, int[] indices) -> Tensor[]",
    ],
);
static VSPLIT: OpInfo = info(
    "vsplit",
    &[
        "vsplit(Tensor self, int sections) -> Tensor[]",
        "vsplit(Tensor self, int[] indices) -> Tensor[]",
    ],
);
static DSPLIT: OpInfo = info(
    "dsplit",
    &[
        "dsplit(Tensor self, int sections) -> Tensor[]",
        "dsplit(Tensor self, int[] indices) -> Tensor[]",
    ],
);
static UNBIND: OpInfo = info("unbind", &["unbind(Tensor self, int dim=0) -> Tensor[]"]);

pub(crate) static OPS: &[&OpInfo] = &[
    &SPLIT,
    &SPLIT_WITH_SIZES,
    &CHUNK,
    &UNSAFE_CHUNK,
    &UNSAFE_SPLIT,
    &UNSAFE_SPLIT_WITH_SIZES,
    &TENSOR_SPLIT,
    &HSPLIT,
    &VSPLIT,
    &DSPLIT,
    &UNBIND,
];
