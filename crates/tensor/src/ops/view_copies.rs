//! Views with memory of their own, and tensors with a part replaced: rows only. Both are a view and
//! a copy, in `api/view_copies.rs` and `api/view_scatter.rs`.

use crate::operation::{OnCuda, OpInfo, Out};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "view_copies",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        out: Out::Exact,
        ..OpInfo::BARE
    }
}

static ALIAS_COPY: OpInfo = info("alias_copy", &["alias_copy(Tensor self) -> Tensor"]);
static AS_STRIDED_COPY: OpInfo = info(
    "as_strided_copy",
    &["as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor"],
);
static DIAGONAL_COPY: OpInfo = info(
    "diagonal_copy",
    &["diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"],
);
static EXPAND_COPY: OpInfo =
    info("expand_copy", &["expand_copy(Tensor self, int[] size) -> Tensor"]);
static NARROW_COPY: OpInfo =
    info("narrow_copy", &["narrow_copy(Tensor self, int dim, int start, int length) -> Tensor"]);
static PERMUTE_COPY: OpInfo =
    info("permute_copy", &["permute_copy(Tensor self, int[] dims) -> Tensor"]);
static SQUEEZE_COPY: OpInfo = info(
    "squeeze_copy",
    &["squeeze_copy(Tensor self) -> Tensor", "squeeze_copy(Tensor self, int[] dim) -> Tensor"],
);
static T_COPY: OpInfo = info("t_copy", &["t_copy(Tensor self) -> Tensor"]);
static TRANSPOSE_COPY: OpInfo =
    info("transpose_copy", &["transpose_copy(Tensor self, int dim0, int dim1) -> Tensor"]);
static UNFOLD_COPY: OpInfo =
    info("unfold_copy", &["unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor"]);
static UNSQUEEZE_COPY: OpInfo =
    info("unsqueeze_copy", &["unsqueeze_copy(Tensor self, int dim) -> Tensor"]);
static VIEW_COPY: OpInfo = info("view_copy", &["view_copy(Tensor self, int[] size) -> Tensor"]);
static UNBIND_COPY: OpInfo =
    OpInfo { ..info("unbind_copy", &["unbind_copy(Tensor self, int dim=0) -> Tensor[]"]) };
static SPLIT_WITH_SIZES_COPY: OpInfo = info(
    "split_with_sizes_copy",
    &["split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"],
);
static SELECT_SCATTER: OpInfo = OpInfo {
    out: Out::None,
    ..info(
        "select_scatter",
        &["select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor"],
    )
};
static SLICE_SCATTER: OpInfo = OpInfo {
    out: Out::Exact,
    ..info(
        "slice_scatter",
        &[
            "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        ],
    )
};
static DIAGONAL_SCATTER: OpInfo = OpInfo {
    out: Out::None,
    ..info(
        "diagonal_scatter",
        &[
            "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        ],
    )
};
static AS_STRIDED_SCATTER: OpInfo = OpInfo {
    out: Out::None,
    ..info(
        "as_strided_scatter",
        &[
            "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        ],
    )
};

pub(crate) static OPS: &[&OpInfo] = &[
    &ALIAS_COPY,
    &AS_STRIDED_COPY,
    &DIAGONAL_COPY,
    &EXPAND_COPY,
    &NARROW_COPY,
    &PERMUTE_COPY,
    &SQUEEZE_COPY,
    &T_COPY,
    &TRANSPOSE_COPY,
    &UNFOLD_COPY,
    &UNSQUEEZE_COPY,
    &VIEW_COPY,
    &UNBIND_COPY,
    &SPLIT_WITH_SIZES_COPY,
    &SELECT_SCATTER,
    &SLICE_SCATTER,
    &DIAGONAL_SCATTER,
    &AS_STRIDED_SCATTER,
];
