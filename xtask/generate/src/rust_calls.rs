//! Where a Rust method is named or called in another way than the rule of `generate.rs` says.

/// Operations whose arguments are all positional in Rust.
pub(crate) const POSITIONAL: &[&str] = &[
    "cat",
    "stack",
    "slice",
    "dropout",
    "as_strided",
    "index_put",
    "uniform_",
    "normal_",
    "split",
    "split_with_sizes",
    "chunk",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "tensor_split",
    "unbind",
    "unbind_copy",
    "split_with_sizes_copy",
    "flatten",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diag",
    "diag_embed",
    "diagflat",
    "tril",
    "triu",
    "rot90",
    "roll",
    "constant_pad_nd",
    "pad",
    "concat",
    "concatenate",
    "combinations",
    "meshgrid",
    "scatter",
    "scatter_reduce",
    "index_add",
    "index_reduce",
    "put",
    "take_along_dim",
    "nonzero_static",
    "exponential_",
    "cauchy_",
    "log_normal_",
    "geometric_",
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "random_",
    "fill",
    "linalg_diagonal",
    "linalg_vander",
    "one_hot",
];

/// Options values that several operations share; others are named like their operation.
pub(crate) const SHARED_OPTIONS: &[(&str, &[&str])] = &[
    ("ProductOptions", &["addmm", "addmv", "addbmm", "baddbmm", "addr"]),
    ("AddOptions", &["add", "sub", "rsub"]),
    ("AddcmulOptions", &["addcmul", "addcdiv"]),
    ("HardshrinkOptions", &["hardshrink", "softshrink"]),
    ("InplaceOptions", &["silu", "mish", "hardswish", "hardsigmoid", "selu", "relu6"]),
    ("IscloseOptions", &["isclose", "allclose"]),
    ("SumOptions", &["sum", "mean", "nansum", "nanmean"]),
    ("ReduceOptions", &["amax", "amin"]),
    ("TruthOptions", &["any", "all"]),
    ("UniqueOptions", &["unique", "unique_consecutive"]),
    ("VarOptions", &["var", "std", "var_mean", "std_mean"]),
    ("ScanOptions", &["cumsum", "cumprod"]),
    ("ExtremeOptions", &["max", "min"]),
    ("MedianOptions", &["median", "nanmedian"]),
    ("QuantileOptions", &["quantile", "nanquantile"]),
    ("TrapezoidOptions", &["trapezoid", "trapz", "cumulative_trapezoid"]),
    ("ArgOptions", &["argmax", "argmin"]),
    ("SoftmaxOptions", &["softmax", "log_softmax"]),
    ("ConvOptions", &["conv1d", "conv2d", "conv3d"]),
    ("ConvTransposeOptions", &["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]),
    (
        "MaxPoolOptions",
        &[
            "max_pool1d",
            "max_pool2d",
            "max_pool3d",
            "max_pool1d_with_indices",
            "max_pool2d_with_indices",
            "max_pool3d_with_indices",
        ],
    ),
    ("AvgPoolOptions", &["avg_pool1d", "avg_pool2d", "avg_pool3d"]),
    ("LuOptions", &["linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu"]),
    ("LinalgSolveOptions", &["linalg_solve", "linalg_solve_ex"]),
    ("LinalgSvdOptions", &["linalg_svd", "linalg_svdvals"]),
    ("LinalgPinvOptions", &["linalg_pinv", "linalg_matrix_rank"]),
    (
        "CholeskyOptions",
        &[
            "linalg_cholesky",
            "linalg_cholesky_ex",
            "cholesky",
            "cholesky_solve",
            "cholesky_inverse",
        ],
    ),
    ("LpPoolOptions", &["lp_pool1d", "lp_pool2d", "lp_pool3d"]),
    ("MaxUnpoolOptions", &["max_unpool1d", "max_unpool2d", "max_unpool3d"]),
];

/// Signatures whose Rust method is not named by the rule.
pub(crate) const RUST_NAMES: &[(&str, &str)] = &[
    ("copy_(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", "copy_with_"),
    ("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "clone_tensor"),
    (
        "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
        "random_between_",
    ),
    ("split(Tensor self, int[] split_size, int dim=0) -> Tensor[]", "split_with_sizes"),
    (
        "split(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]",
        "split_with_sizes",
    ),
    (
        "tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
        "tensor_split_by",
    ),
    ("squeeze_copy(Tensor self, int[] dim) -> Tensor", "squeeze_copy_with"),
    ("narrow(Tensor self, int dim, Tensor start, int length) -> Tensor", "narrow_from"),
    ("squeeze(Tensor self, int[] dim) -> Tensor", "squeeze_with"),
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
    (
        "gradient(Tensor self, *, Tensor[] spacing, int[]? dim=None, int edge_order=1) -> Tensor[]",
        "gradient_at",
    ),
    (
        "gradient(Tensor self, *, float[] spacing, int[]? dim=None, int edge_order=1) -> Tensor[]",
        "gradient_apart",
    ),
    (
        "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, DType input_dtype) -> Tensor",
        "softmax_backward_data",
    ),
    (
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "native_batch_norm_legit",
    ),
    (
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        "batch_norm_with_update",
    ),
    ("linalg_cond(Tensor A, str p) -> Tensor", "linalg_cond_named"),
    ("_safe_softmax(Tensor self, int dim, DType? dtype=None) -> Tensor", "safe_softmax_with"),
    ("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", "chunk_cat"),
    (
        "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
        "unsafe_masked_index",
    ),
    (
        "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
        "unsafe_masked_index_put_accumulate",
    ),
];

/// Operations for which no dimensions are others than none given.
pub(crate) const NONE_IS_NOT_EMPTY: &[&str] = &["any", "all"];

/// Signatures whose Rust call is not built by the rule: the first parameter is not the tensor that
/// Rust calls, or Rust has a number where PyTorch has None.
pub(crate) const RUST_CALLS: &[(&str, &str)] = &[
    (
        "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
        "a.tensor(0)?.linalg_eigh_with(plimsoll_tensor::EighOptions::new().uplo(a.word::<plimsoll_tensor::Uplo>(1)?))?",
    ),
    (
        "linalg_eigvalsh(Tensor A, str UPLO='L') -> Tensor",
        "a.tensor(0)?.linalg_eigvalsh_with(plimsoll_tensor::EighOptions::new().uplo(a.word::<plimsoll_tensor::Uplo>(1)?))?",
    ),
    (
        "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
        "a.tensor(0)?.linalg_qr_with(plimsoll_tensor::LinalgQrOptions::new().mode(a.word::<plimsoll_tensor::QrMode>(1)?))?",
    ),
    (
        "linalg_pinv(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_pinv_by(plimsoll_tensor::PinvTensorOptions::new().atol(a.optional_tensor(1)).rtol(a.optional_tensor(2)).hermitian(a.bool(3)?))?",
    ),
    (
        "linalg_pinv(Tensor A, float rcond, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_pinv_with(plimsoll_tensor::LinalgPinvOptions::new().atol(0.0).rtol(a.float(1)?).hermitian(a.bool(2)?))?",
    ),
    (
        "linalg_pinv(Tensor A, Tensor rcond, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_pinv_by(plimsoll_tensor::PinvTensorOptions::new().rtol(a.tensor(1)?).hermitian(a.bool(2)?))?",
    ),
    (
        "linalg_matrix_rank(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_matrix_rank_by(plimsoll_tensor::PinvTensorOptions::new().atol(a.optional_tensor(1)).rtol(a.optional_tensor(2)).hermitian(a.bool(3)?))?",
    ),
    (
        "linalg_matrix_rank(Tensor A, float tol, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_matrix_rank_with(plimsoll_tensor::LinalgPinvOptions::new().atol(a.float(1)?).rtol(0.0).hermitian(a.bool(2)?))?",
    ),
    (
        "linalg_matrix_rank(Tensor A, Tensor tol, bool hermitian=False) -> Tensor",
        "a.tensor(0)?.linalg_matrix_rank_by(plimsoll_tensor::PinvTensorOptions::new().atol(a.tensor(1)?).rtol(&a.tensor(1)?.zeros_like()?).hermitian(a.bool(2)?))?",
    ),
    (
        "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.native_layer_norm(a.ints(1)?, plimsoll_tensor::LayerNormOptions::new().weight(a.optional_tensor(2)).bias(a.optional_tensor(3)).eps(a.float(4)?))?",
    ),
    (
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.native_group_norm(a.int(6)?, plimsoll_tensor::GroupNormOptions::new().weight(a.optional_tensor(1)).bias(a.optional_tensor(2)).eps(a.float(7)?))?",
    ),
    (
        "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.native_batch_norm(a.optional_tensor(3), a.optional_tensor(4), plimsoll_tensor::BatchNormOptions::new().weight(a.optional_tensor(1)).bias(a.optional_tensor(2)).training(a.bool(5)?).momentum(a.float(6)?).eps(a.float(7)?))?",
    ),
    (
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.native_batch_norm_legit(a.optional_tensor(3), a.optional_tensor(4), plimsoll_tensor::BatchNormOptions::new().weight(a.optional_tensor(1)).bias(a.optional_tensor(2)).training(a.bool(5)?).momentum(a.float(6)?).eps(a.float(7)?))?",
    ),
    (
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.native_batch_norm_legit(None, None, plimsoll_tensor::BatchNormOptions::new().weight(a.optional_tensor(1)).bias(a.optional_tensor(2)).training(a.bool(3)?).momentum(a.float(4)?).eps(a.float(5)?))?",
    ),
    (
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        "a.tensor(0)?.batch_norm_with_update(a.tensor(3)?, a.tensor(4)?, plimsoll_tensor::BatchNormOptions::new().weight(a.optional_tensor(1)).bias(a.optional_tensor(2)).momentum(a.float(5)?).eps(a.float(6)?))?",
    ),
    (
        "einsum(str equation, Tensor[] tensors) -> Tensor",
        "Tensor::einsum(a.text(0)?, &a.tensors(1)?)?",
    ),
    ("polygamma(int n, Tensor self) -> Tensor", "a.tensor(1)?.polygamma(a.int(0)?)?"),
    (
        "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        "a.tensor(0)?.clone_with(a.optional_memory_format(1).unwrap_or(plimsoll_tensor::MemoryFormat::Preserve))?",
    ),
    (
        "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided(a.ints(1)?, a.ints(2)?, a.optional_int(3).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided_copy(a.ints(1)?, a.ints(2)?, a.optional_int(3).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided_scatter(a.tensor(1)?, a.ints(2)?, a.ints(3)?, a.optional_int(4).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        "a.tensor(0)?.slice_scatter(a.tensor(1)?, a.int(2)?, a.optional_int(3).unwrap_or(0), a.optional_int(4).unwrap_or(i64::MAX), a.int(5)?)?",
    ),
    ("fill(Tensor self, Tensor|Scalar value) -> Tensor", "a.tensor(0)?.fill(a.other(1)?)?"),
    (
        "atleast_1d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_1d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "atleast_2d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_2d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "atleast_3d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_3d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "a.tensor(0)?.repeat_interleave(a.int(1)?, a.optional_int(2))?",
    ),
    (
        "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "a.tensor(0)?.repeat_interleave_by(a.tensor(1)?, a.optional_int(2))?",
    ),
    (
        "normal(Tensor|Scalar mean, Tensor|Scalar std=1, *, Generator? generator=None) -> Tensor",
        "Tensor::normal(a.other(0)?, a.other(1)?)?",
    ),
    (
        "normal(float mean, float std, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool requires_grad=False, Layout? layout=None, bool? pin_memory=False) -> Tensor",
        "Tensor::normal_of_size(a.float(0)?, a.float(1)?, a.ints(2)?, plimsoll_tensor::TensorOptions { dtype: a.optional_dtype(4), device: a.optional_device(5), requires_grad: a.bool(6)?, memory_format: None })?",
    ),
    (
        "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor",
        "Tensor::interleaved(a.tensor(0)?)?",
    ),
    (
        "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        "a.tensor(0)?.slice(a.int(1)?, a.optional_int(2).unwrap_or(0), a.optional_int(3).unwrap_or(i64::MAX), a.int(4)?)?",
    ),
    (
        "lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.lstm_with(&a.tensors(1)?, &a.tensors(2)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(3)?).num_layers(a.int(4)?).dropout(a.float(5)?).train(a.bool(6)?).bidirectional(a.bool(7)?).batch_first(a.bool(8)?))?",
    ),
    (
        "lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
        "a.tensor(0)?.lstm_packed(a.tensor(1)?, &a.tensors(2)?, &a.tensors(3)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(4)?).num_layers(a.int(5)?).dropout(a.float(6)?).train(a.bool(7)?).bidirectional(a.bool(8)?))?",
    ),
    (
        "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
        "a.tensor(0)?.lstm_cell_with(&a.tensors(1)?, a.tensor(2)?, a.tensor(3)?, plimsoll_tensor::CellOptions::new().b_ih(a.optional_tensor(4)).b_hh(a.optional_tensor(5)))?",
    ),
    (
        "gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "a.tensor(0)?.gru_with(a.tensor(1)?, &a.tensors(2)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(3)?).num_layers(a.int(4)?).dropout(a.float(5)?).train(a.bool(6)?).bidirectional(a.bool(7)?).batch_first(a.bool(8)?))?",
    ),
    (
        "gru(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "a.tensor(0)?.gru_packed(a.tensor(1)?, a.tensor(2)?, &a.tensors(3)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(4)?).num_layers(a.int(5)?).dropout(a.float(6)?).train(a.bool(7)?).bidirectional(a.bool(8)?))?",
    ),
    (
        "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        "a.tensor(0)?.gru_cell_with(a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, plimsoll_tensor::CellOptions::new().b_ih(a.optional_tensor(4)).b_hh(a.optional_tensor(5)))?",
    ),
    (
        "rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "a.tensor(0)?.rnn_tanh_with(a.tensor(1)?, &a.tensors(2)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(3)?).num_layers(a.int(4)?).dropout(a.float(5)?).train(a.bool(6)?).bidirectional(a.bool(7)?).batch_first(a.bool(8)?))?",
    ),
    (
        "rnn_tanh(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "a.tensor(0)?.rnn_tanh_packed(a.tensor(1)?, a.tensor(2)?, &a.tensors(3)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(4)?).num_layers(a.int(5)?).dropout(a.float(6)?).train(a.bool(7)?).bidirectional(a.bool(8)?))?",
    ),
    (
        "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        "a.tensor(0)?.rnn_tanh_cell_with(a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, plimsoll_tensor::CellOptions::new().b_ih(a.optional_tensor(4)).b_hh(a.optional_tensor(5)))?",
    ),
    (
        "rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "a.tensor(0)?.rnn_relu_with(a.tensor(1)?, &a.tensors(2)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(3)?).num_layers(a.int(4)?).dropout(a.float(5)?).train(a.bool(6)?).bidirectional(a.bool(7)?).batch_first(a.bool(8)?))?",
    ),
    (
        "rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "a.tensor(0)?.rnn_relu_packed(a.tensor(1)?, a.tensor(2)?, &a.tensors(3)?, plimsoll_tensor::RecurrentOptions::new().has_biases(a.bool(4)?).num_layers(a.int(5)?).dropout(a.float(6)?).train(a.bool(7)?).bidirectional(a.bool(8)?))?",
    ),
    (
        "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        "a.tensor(0)?.rnn_relu_cell_with(a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, plimsoll_tensor::CellOptions::new().b_ih(a.optional_tensor(4)).b_hh(a.optional_tensor(5)))?",
    ),
];
