//! Where one name has several signatures, Rust has several methods: their names, for `generate.rs`.

/// Signatures whose Rust method is not named by the rule.
pub(crate) const RUST_NAMES: &[(&str, &str)] = &[
    ("clone(Tensor self) -> Tensor", "clone_tensor"),
    (
        "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "max_along",
    ),
    ("max(Tensor self, Tensor other) -> Tensor", "maximum"),
    (
        "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "min_along",
    ),
    ("min(Tensor self, Tensor other) -> Tensor", "minimum"),
    (
        "median(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "median_along",
    ),
    (
        "nanmedian(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "nanmedian_along",
    ),
    (
        "quantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        "quantile_of",
    ),
    (
        "nanquantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        "nanquantile_of",
    ),
    ("trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor", "trapezoid_at"),
    ("trapz(Tensor y, Tensor x, *, int dim=-1) -> Tensor", "trapezoid_at"),
    (
        "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        "cumulative_trapezoid_at",
    ),
    (
        "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, DType? dtype=None) -> Tensor",
        "linalg_matrix_norm_of",
    ),
    (
        "linalg_norm(Tensor self, str ord, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        "linalg_norm_named",
    ),
    (
        "norm(Tensor self, Scalar p, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        "norm_of",
    ),
    (
        "histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        "histogram_between",
    ),
    ("squeeze(Tensor self, int[] dim) -> Tensor", "squeeze_with"),
];
