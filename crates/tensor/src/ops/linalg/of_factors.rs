//! Rows of what is computed from factors of matrices without a kernel of its own: pseudoinverses,
//! ranks, condition numbers, least squares, systems of tensors.

use super::matrices::{at_top, flat, of_factorizations};
use crate::operation::{OpInfo, Out};

static PINV: OpInfo = of_factorizations(
    "linalg_pinv",
    &[
        "linalg_pinv(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        "linalg_pinv(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        "linalg_pinv(Tensor A, float rcond, bool hermitian=False) -> Tensor",
        "linalg_pinv(Tensor A, Tensor rcond, bool hermitian=False) -> Tensor",
    ],
);
static PINVERSE: OpInfo = OpInfo {
    out: Out::None,
    ..at_top(of_factorizations("pinverse", &["pinverse(Tensor self, float rcond=1e-15) -> Tensor"]))
};
static MATRIX_RANK: OpInfo = flat(of_factorizations(
    "linalg_matrix_rank",
    &[
        "linalg_matrix_rank(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        "linalg_matrix_rank(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        "linalg_matrix_rank(Tensor A, float tol, bool hermitian=False) -> Tensor",
        "linalg_matrix_rank(Tensor A, Tensor tol, bool hermitian=False) -> Tensor",
    ],
));
static COND: OpInfo = of_factorizations(
    "linalg_cond",
    &["linalg_cond(Tensor A, Scalar? p=None) -> Tensor", "linalg_cond(Tensor A, str p) -> Tensor"],
);
static TENSORINV: OpInfo =
    of_factorizations("linalg_tensorinv", &["linalg_tensorinv(Tensor A, int ind=2) -> Tensor"]);
static TENSORSOLVE: OpInfo = of_factorizations(
    "linalg_tensorsolve",
    &["linalg_tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor"],
);
static LSTSQ: OpInfo = of_factorizations(
    "linalg_lstsq",
    &[
        "linalg_lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    ],
);
static SQRTH: OpInfo = OpInfo {
    out: Out::None,
    ..of_factorizations("linalg_matrix_sqrth", &["linalg_matrix_sqrth(Tensor A) -> Tensor"])
};
static POLAR: OpInfo =
    of_factorizations("linalg_polar", &["linalg_polar(Tensor A) -> (Tensor U, Tensor H)"]);
const EXPONENTIAL: OpInfo = OpInfo {
    out: Out::None,
    ..of_factorizations("matrix_exp", &["matrix_exp(Tensor self) -> Tensor"])
};
static MATRIX_EXP: OpInfo = at_top(EXPONENTIAL);
static LINALG_MATRIX_EXP: OpInfo = OpInfo {
    name: "linalg_matrix_exp",
    signatures: &["linalg_matrix_exp(Tensor A) -> Tensor"],
    ..EXPONENTIAL
};

pub(crate) static OPS: &[&OpInfo] = &[
    &PINV,
    &PINVERSE,
    &MATRIX_RANK,
    &COND,
    &TENSORINV,
    &TENSORSOLVE,
    &LSTSQ,
    &SQRTH,
    &POLAR,
    &MATRIX_EXP,
    &LINALG_MATRIX_EXP,
];
