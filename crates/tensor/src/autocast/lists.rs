//! PyTorch's lists of mixed precision: which operations are cast to the lower precision, which to
//! float32, and which to the widest dtype of their operands, on CUDA and on the CPU. What an
//! operation computes is not here (`ops/`), nor when its operands are cast (`autocast.rs`).
//!
//! The lists are by name and not facts of the registry's rows because PyTorch casts functions as
//! they are called: many are made of others here, and some exist in Python alone.
//! `cargo xtask conformance training --part autocast` holds them to PyTorch's own.

use std::collections::HashMap;
use std::sync::LazyLock;

use plimsoll_core::DeviceKind;

/// What mixed precision does with the float operands of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Casts {
    /// On CUDA, and on the stand-in accelerator.
    pub(crate) cuda: Cast,
    /// On the CPU.
    pub(crate) cpu: Cast,
}

/// What is done to float operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// Nothing, and nothing to what the operation is made of.
    AsGiven,
    /// To the lower precision: products.
    Lower,
    /// To float32: what would lose too much.
    Float32,
    /// To the widest among them.
    Widest,
    /// To the dtype of the second: a recurrent step goes on in that of its state.
    Second,
    /// The operation is refused: its gradients would be out of float16's range.
    Refused,
    /// Nothing; what it is made of is cast by its own rules.
    Parts,
}

impl Casts {
    /// For operations that are in no list.
    pub(crate) const PARTS: Casts = Casts { cuda: Cast::Parts, cpu: Cast::Parts };
    /// For what runs inside an operation whose operands were cast already.
    pub(crate) const AS_GIVEN: Casts = Casts { cuda: Cast::AsGiven, cpu: Cast::AsGiven };

    pub(crate) fn on(self, kind: DeviceKind) -> Cast {
        match kind {
            DeviceKind::Cpu => self.cpu,
            _ => self.cuda,
        }
    }
}

/// What is done to the operands of the operation of that name.
pub(crate) fn casts(name: &str) -> Casts {
    LISTED.get(name).copied().unwrap_or(Casts::PARTS)
}

static LISTED: LazyLock<HashMap<&'static str, Casts>> = LazyLock::new(|| {
    let mut listed: HashMap<&'static str, Casts> = HashMap::new();
    let cuda = [
        (CUDA_AS_GIVEN, Cast::AsGiven),
        (CUDA_LOWER, Cast::Lower),
        (CUDA_FLOAT32, Cast::Float32),
        (CUDA_WIDEST, Cast::Widest),
        (CUDA_REFUSED, Cast::Refused),
    ];
    for (names, cast) in cuda {
        for name in names {
            listed.entry(name).or_insert(Casts::PARTS).cuda = cast;
        }
    }
    let cpu = [
        (CPU_AS_GIVEN, Cast::AsGiven),
        (CPU_LOWER, Cast::Lower),
        (CPU_FLOAT32, Cast::Float32),
        (CPU_WIDEST, Cast::Widest),
        (CPU_SECOND, Cast::Second),
    ];
    for (names, cast) in cpu {
        for name in names {
            listed.entry(name).or_insert(Casts::PARTS).cpu = cast;
        }
    }
    listed
});

/// Products on CUDA.
const CUDA_LOWER: &[&str] = &[
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "einsum",
    "mm",
    "mv",
    "linalg_vecdot",
    "linear",
    "addbmm",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "linalg_multi_dot",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
    // The layers are cuDNN's in PyTorch, which casts them too.
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "scaled_dot_product_attention",
];

/// What loses too much in float16 on CUDA.
const CUDA_FLOAT32: &[&str] = &[
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "rms_norm",
    "group_norm",
    "norm",
    "linalg_vector_norm",
    "linalg_matrix_norm",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "binary_cross_entropy_with_logits",
    "dist",
    "pdist",
    "cdist",
    "renorm",
    "logsumexp",
    "upsample",
    "linalg_matrix_sqrth",
    "prod",
    "softmax",
    "log_softmax",
    "cumprod",
    "cumsum",
    "sum",
    // Made of softmax and a loss, both of the list.
    "cross_entropy",
];

/// What needs operands of one dtype on CUDA.
const CUDA_WIDEST: &[&str] = &[
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "vdot",
    "grid_sample",
    "grid_sampler",
    "index_put",
    "tensordot",
    "scatter_add",
    "cat",
    "stack",
];

/// Its derivative does not fit float16; the form that takes logits is safe.
const CUDA_REFUSED: &[&str] = &["binary_cross_entropy"];

/// Single operations in PyTorch, made of listed ones here.
const CUDA_AS_GIVEN: &[&str] = &["trace"];

/// Products on the CPU.
const CPU_LOWER: &[&str] = &[
    "conv1d",
    "conv2d",
    "conv3d",
    "bmm",
    "mm",
    "linalg_vecdot",
    "baddbmm",
    "addmm",
    "addbmm",
    "linear",
    "matmul",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "prelu",
    "scaled_dot_product_attention",
    // The kernels of oneDNN in PyTorch, and sums of products.
    "lstm",
    "rnn_tanh",
    "rnn_relu",
    "rnn_tanh_cell",
    "rnn_relu_cell",
];

/// Products on PyTorch's CPU that are mixed with a state as it is.
const CPU_SECOND: &[&str] = &["gru", "lstm_cell", "gru_cell"];

/// What PyTorch's CPU has no kernels of halves for, or loses too much in.
const CPU_FLOAT32: &[&str] = &[
    "avg_pool3d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "max_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "grid_sample",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "cdist",
    "prod",
    "trace",
    "quantile",
    "nanquantile",
    "cholesky_inverse",
    "cholesky_solve",
    "geqrf",
    "inverse",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_cond",
    "linalg_eigh",
    "linalg_eigvalsh",
    "linalg_householder_product",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_matrix_rank",
    "linalg_matrix_sqrth",
    "linalg_qr",
    "linalg_solve",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "lu_solve",
    "orgqr",
    "ormqr",
    "pinverse",
    "svd",
    "triangular_solve",
];

/// What needs operands of one dtype on the CPU.
const CPU_WIDEST: &[&str] = &["cat", "stack", "index_copy"];

/// Single operations in PyTorch, made of listed ones here.
const CPU_AS_GIVEN: &[&str] = &["dot", "vdot", "mv", "addmv"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operation_is_in_two_lists_of_a_device() {
        let cuda = [CUDA_AS_GIVEN, CUDA_LOWER, CUDA_FLOAT32, CUDA_WIDEST, CUDA_REFUSED].concat();
        let cpu = [CPU_AS_GIVEN, CPU_LOWER, CPU_FLOAT32, CPU_WIDEST, CPU_SECOND].concat();
        for mut names in [cuda, cpu] {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn what_is_in_no_list_is_left_to_its_parts() {
        assert_eq!(casts("add"), Casts::PARTS);
        assert_eq!(casts("matmul"), Casts { cuda: Cast::Lower, cpu: Cast::Lower });
        assert_eq!(casts("prod"), Casts { cuda: Cast::Float32, cpu: Cast::Float32 });
    }
}
