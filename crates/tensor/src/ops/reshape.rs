//! Other shapes and orders of dimensions that are made of views, with a copy where no view exists:
//! rows only. The methods are in `api/reshape.rs` and `api/orders.rs`.

use crate::operation::{OnCuda, OpInfo};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "reshape",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        ..OpInfo::BARE
    }
}

static RESHAPE: OpInfo = info("reshape", &["reshape(Tensor self, int[] shape) -> Tensor"]);
static RESHAPE_AS: OpInfo =
    info("reshape_as", &["reshape_as(Tensor self, Tensor other) -> Tensor"]);
static VIEW_AS: OpInfo = info("view_as", &["view_as(Tensor self, Tensor other) -> Tensor"]);
static FLATTEN: OpInfo =
    info("flatten", &["flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor"]);
static UNFLATTEN: OpInfo =
    info("unflatten", &["unflatten(Tensor self, int dim, int[] sizes) -> Tensor"]);
static RAVEL: OpInfo = info("ravel", &["ravel(Tensor self) -> Tensor"]);
static EXPAND_AS: OpInfo = info("expand_as", &["expand_as(Tensor self, Tensor other) -> Tensor"]);
static BROADCAST_TO: OpInfo =
    info("broadcast_to", &["broadcast_to(Tensor self, int[] size) -> Tensor"]);
static BROADCAST_TENSORS: OpInfo =
    info("broadcast_tensors", &["broadcast_tensors(Tensor[] tensors) -> Tensor[]"]);
static ATLEAST_1D: OpInfo = info(
    "atleast_1d",
    &["atleast_1d(Tensor self) -> Tensor", "atleast_1d(Tensor[] tensors) -> Tensor[]"],
);
static ATLEAST_2D: OpInfo = info(
    "atleast_2d",
    &["atleast_2d(Tensor self) -> Tensor", "atleast_2d(Tensor[] tensors) -> Tensor[]"],
);
static ATLEAST_3D: OpInfo = info(
    "atleast_3d",
    &["atleast_3d(Tensor self) -> Tensor", "atleast_3d(Tensor[] tensors) -> Tensor[]"],
);
static T: OpInfo = info("t", &["t(Tensor self) -> Tensor"]);
static ADJOINT: OpInfo = info("adjoint", &["adjoint(Tensor self) -> Tensor"]);
static MOVEDIM: OpInfo =
    info("movedim", &["movedim(Tensor self, int[] source, int[] destination) -> Tensor"]);
static MOVEAXIS: OpInfo =
    info("moveaxis", &["moveaxis(Tensor self, int[] source, int[] destination) -> Tensor"]);
static SWAPAXES: OpInfo =
    info("swapaxes", &["swapaxes(Tensor self, int axis0, int axis1) -> Tensor"]);
static SWAPDIMS: OpInfo =
    info("swapdims", &["swapdims(Tensor self, int dim0, int dim1) -> Tensor"]);

pub(crate) static OPS: &[&OpInfo] = &[
    &RESHAPE,
    &RESHAPE_AS,
    &VIEW_AS,
    &FLATTEN,
    &UNFLATTEN,
    &RAVEL,
    &EXPAND_AS,
    &BROADCAST_TO,
    &BROADCAST_TENSORS,
    &ATLEAST_1D,
    &ATLEAST_2D,
    &ATLEAST_3D,
    &T,
    &ADJOINT,
    &MOVEDIM,
    &MOVEAXIS,
    &SWAPAXES,
    &SWAPDIMS,
];
