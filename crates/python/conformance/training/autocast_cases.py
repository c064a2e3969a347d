"""Calls of every operation that PyTorch's mixed precision names on CPU and CUDA, and of some that it leaves alone, as texts: the
same text is run in PyTorch and here (`autocast.py`), and what is compared are the dtypes of the results.

`x(2, 3)` is a float tensor of that shape in the first operand's dtype, `y(2, 3)` one in the others'; `e(3)` is a unit matrix in the
first dtype, `f(3)` in the others', and `i(4)` are zeros of int64. `p` is the package and `F` its `nn.functional`."""

from __future__ import annotations

from typing import Any

# The dtypes of the first operand and of the others: `lower` is the one that the region casts to.
OPERANDS = [
    ("float32", "float32"),
    ("lower", "lower"),
    ("float32", "lower"),
    ("lower", "float32"),
    ("float64", "float64"),
]

# Products, convolutions and recurrent cells: the lower precision.
PRODUCTS = [
    "F.conv1d(x(2, 3, 5), y(4, 3, 2))",
    "F.conv1d(x(2, 3, 5), y(4, 3, 2), y(4), padding='same')",
    "F.conv2d(x(2, 3, 5, 5), y(4, 3, 2, 2), y(4))",
    "F.conv2d(x(2, 3, 5, 5), y(4, 3, 3, 3), padding='same')",
    "F.conv3d(x(2, 3, 4, 4, 4), y(4, 3, 2, 2, 2))",
    "F.conv3d(x(2, 3, 4, 4, 4), y(4, 3, 3, 3, 3), padding='same')",
    "F.conv_tbc(x(6, 2, 3), y(2, 3, 4), y(4), 0)",
    "F.conv_transpose1d(x(2, 3, 5), y(3, 4, 2))",
    "F.conv_transpose2d(x(2, 3, 5, 5), y(3, 4, 2, 2), y(4))",
    "F.conv_transpose3d(x(2, 3, 4, 4, 4), y(3, 4, 2, 2, 2))",
    "p.prelu(x(4), y(1))",
    "F.prelu(x(2, 4), y(4))",
    "p.addmm(x(3, 3), y(3, 3), y(3, 3))",
    "p.addmv(x(3), y(3, 3), y(3))",
    "p.addr(x(3, 3), y(3), y(3))",
    "p.matmul(x(3, 3), y(3, 3))",
    "p.matmul(x(3), y(3))",
    "p.matmul(x(2, 3, 3), y(3))",
    "x(3, 3) @ y(3, 3)",
    "p.einsum('ij,jk->ik', x(3, 3), y(3, 3))",
    "p.einsum('ij->i', x(3, 3))",
    "p.mm(x(3, 3), y(3, 3))",
    "p.mv(x(3, 3), y(3))",
    "p.chain_matmul(x(3, 3), y(3, 3), y(3, 3))",
    "p.linalg.multi_dot([x(3, 3), y(3, 3), y(3, 3)])",
    "p.linalg.vecdot(x(3, 3), y(3, 3))",
    "p.addbmm(x(3, 3), y(2, 3, 3), y(2, 3, 3))",
    "p.baddbmm(x(2, 3, 3), y(2, 3, 3), y(2, 3, 3))",
    "p.bmm(x(2, 3, 3), y(2, 3, 3))",
    "F.linear(x(2, 3), y(4, 3))",
    "F.linear(x(2, 3), y(4, 3), y(4))",
    "F.linear(x(3), y(4, 3))",
    "F.bilinear(x(2, 3), y(2, 4), y(5, 3, 4))",
    "F.scaled_dot_product_attention(x(2, 2, 3, 4), y(2, 2, 3, 4), y(2, 2, 3, 4))",
    "p.lstm_cell(x(2, 3), (y(2, 4), y(2, 4)), y(16, 3), y(16, 4), y(16), y(16))",
    "p.gru_cell(x(2, 3), y(2, 4), y(12, 3), y(12, 4), y(12), y(12))",
    "p.rnn_tanh_cell(x(2, 3), y(2, 4), y(4, 3), y(4, 4), y(4), y(4))",
    "p.rnn_relu_cell(x(2, 3), y(2, 4), y(4, 3), y(4, 4), y(4), y(4))",
    "p.tensordot(x(2, 2, 2), y(2, 2, 2))",
    "p.cdist(x(3, 4), y(2, 4))",
    "p.inner(x(3), y(3))",
    "p.outer(x(3), y(3))",
    "p.kron(x(2, 2), y(2, 2))",
]

# Functions of one tensor that lose too much in halves.
UNARY = [
    *(f"p.{name}(x(4))" for name in ("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p")),
    *(f"p.{name}(x(4))" for name in ("reciprocal", "rsqrt", "sinh", "tan")),
    "p.pow(x(4), 1.7)", "p.pow(x(4), 2)", "p.pow(x(4), y(4))", "p.pow(1.7, x(4))", "x(4) ** 1.5", "1.5 ** x(4)",
    "F.softplus(x(4))", "F.softmax(x(3, 4), 1)", "p.softmax(x(4), 0)", "F.log_softmax(x(3, 4), 1)",
    "F.softmin(x(4), 0)", "F.softmax(x(3, 4), 1, dtype=p.float64)", "x(4).softmax(0)",
    "F.layer_norm(x(2, 4), (4,))", "F.layer_norm(x(2, 4), (4,), y(4), y(4))",
    "p.native_layer_norm(x(2, 4), (4,), None, None, 1e-5)", "F.rms_norm(x(2, 4), (4,))", "F.group_norm(x(2, 4), 2)",
    "F.group_norm(x(2, 4), 2, y(4), y(4))", "p.norm(x(4))", "p.norm(x(4), dim=0)", "p.norm(x(4), 1)",
    "p.norm(x(4), 1, dim=0)", "p.norm(x(3, 3), 'fro')", "p.norm(x(3, 3), 'nuc')", "p.linalg.norm(x(4))",
    "p.linalg.norm(x(3, 3), 2)", "p.linalg.vector_norm(x(4))", "p.linalg.vector_norm(x(4), dtype=p.float64)",
    "p.linalg.matrix_norm(x(3, 3))", "p.linalg.matrix_norm(x(3, 3), 1)",
    "p.cumprod(x(4), 0)", "p.cumsum(x(4), 0)", "p.prod(x(4))", "p.prod(x(3, 4), 1)", "p.sum(x(4))", "p.sum(x(3, 4), 1)",
    "x(3, 4).sum((0, 1))", "p.sum(x(4), dtype=p.float64)", "p.prod(x(4), dtype=p.float64)", "p.cumsum(x(4), 0, dtype=p.float64)",
    "p.logsumexp(x(3, 4), 1)", "p.renorm(x(3, 3), 2, 0, 1.0)", "p.trace(x(3, 3))",
    "p.quantile(x(4), 0.5)", "p.quantile(x(4), x(2))", "p.nanquantile(x(4), 0.5)", "p.nanquantile(x(4), x(2))",
]  # fmt: skip

# Distances, losses, and what takes two tensors.
LOSSES = [
    "F.cosine_similarity(x(3, 4), y(3, 4))", "p.dist(x(4), y(4))", "F.pdist(x(3, 4))", "F.pairwise_distance(x(3, 4), y(3, 4))",
    "F.poisson_nll_loss(x(3, 4), y(3, 4))", "F.cosine_embedding_loss(x(1, 3), y(1, 3), p.ones(1, device=device))",
    "F.hinge_embedding_loss(x(3, 4), y(3, 4))", "F.hinge_embedding_loss(x(4), i(4))", "F.kl_div(x(3, 4), y(3, 4))",
    "F.kl_div(x(3, 4), y(3, 4), log_target=True)", "F.margin_ranking_loss(x(3), y(3), y(3))",
    "F.triplet_margin_loss(x(3, 4), y(3, 4), y(3, 4))",
    "F.triplet_margin_with_distance_loss(x(3, 4), y(3, 4), y(3, 4))",
    "F.binary_cross_entropy_with_logits(x(3, 4), y(3, 4))", "F.binary_cross_entropy(x(3, 4), y(3, 4))",
    "F.nll_loss(x(3, 4), i(3))", "F.nll_loss(x(3, 4), i(3), y(4))", "F.nll_loss(x(1, 3, 2, 2), i(1, 2, 2))",
    "F.cross_entropy(x(3, 4), i(3))", "F.cross_entropy(x(3, 4), i(3), label_smoothing=0.1)", "F.cross_entropy(x(3, 4), y(3, 4))",
    "F.l1_loss(x(3, 4), y(3, 4))", "F.smooth_l1_loss(x(3, 4), y(3, 4))", "F.huber_loss(x(3, 4), y(3, 4))",
    "F.mse_loss(x(3, 4), y(3, 4))", "F.mse_loss(x(3, 4), y(3, 4), reduction='none')",
    "F.multilabel_margin_loss(x(3, 4), i(3, 4))", "F.multi_margin_loss(x(3, 4), i(3))",
    "F.multilabel_soft_margin_loss(x(3, 4), y(3, 4))",
    "F.soft_margin_loss(x(3, 4), y(3, 4))", "F.gaussian_nll_loss(x(3), y(3), y(3))",
    "F.ctc_loss(x(5, 1, 4), i(1, 2) + 1, (5,), (2,))",
    "F.ctc_loss(x(5, 1, 4), i(1, 2) + 1, i(1) + 5, i(1) + 2)",
]  # fmt: skip

# What takes the widest of its operands' dtypes, by mixed precision or by itself.
WIDEST = [
    "p.addcdiv(x(4), y(4), y(4))", "p.addcmul(x(4), y(4), y(4))", "p.atan2(x(4), y(4))", "p.cross(x(3), y(3), dim=0)",
    "p.linalg.cross(x(3), y(3))", "p.dot(x(4), y(4))", "p.vdot(x(4), y(4))", "F.grid_sample(x(1, 2, 3, 3), y(1, 2, 2, 2))",
    "F.grid_sample(x(1, 2, 3, 3, 3), y(1, 2, 2, 2, 3))", "p.grid_sampler(x(1, 2, 3, 3), y(1, 2, 2, 2), 0, 0, False)",
    "p.index_put(x(4), (i(1),), y(1))", "p.scatter_add(x(2, 2), 0, i(2, 2), y(2, 2))", "p.cat([x(4), y(4)])",
    "p.stack([x(4), y(4)])", "p.hstack([x(4), y(4)])", "p.vstack([x(4), y(4)])", "p.index_copy(x(4), 0, i(1), y(1))",
    *(f"p.{name}(x(4), y(4))" for name in ("eq", "ge", "gt", "le", "lt", "ne", "add", "sub", "mul", "div", "maximum", "hypot")),
    "p.equal(x(4), y(4))", "p.where(x(4) > 0, x(4), y(4))", "p.lerp(x(4), y(4), 0.5)", "x(4) + 1.5", "x(4) * i(4)",
]  # fmt: skip

# Resampling, pools and padding.
IMAGES = [
    "F.interpolate(x(1, 2, 4), scale_factor=2)", "F.interpolate(x(1, 2, 4, 4), scale_factor=2)",
    "F.interpolate(x(1, 2, 4, 4, 4), scale_factor=2)", "F.interpolate(x(1, 2, 4), size=5, mode='nearest-exact')",
    "F.interpolate(x(1, 2, 4, 4), size=5, mode='nearest-exact')", "F.interpolate(x(1, 2, 4, 4, 4), size=5, mode='nearest-exact')",
    "F.interpolate(x(1, 2, 4), size=5, mode='linear')", "F.interpolate(x(1, 2, 4, 4), size=5, mode='bilinear')",
    "F.interpolate(x(1, 2, 4, 4), size=3, mode='bilinear', antialias=True)", "F.interpolate(x(1, 2, 4, 4), size=5, mode='bicubic')",
    "F.interpolate(x(1, 2, 4, 4), size=3, mode='bicubic', antialias=True)",
    "F.interpolate(x(1, 2, 4, 4, 4), size=5, mode='trilinear')",
    "F.interpolate(x(1, 2, 4, 4), size=2, mode='area')",
    "F.avg_pool1d(x(1, 2, 4), 2)", "F.avg_pool2d(x(1, 2, 4, 4), 2)", "F.avg_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.max_pool1d(x(1, 2, 4), 2)", "F.max_pool2d(x(1, 2, 4, 4), 2)", "F.max_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.adaptive_avg_pool1d(x(1, 2, 4), 2)", "F.adaptive_avg_pool2d(x(1, 2, 4, 4), 2)", "F.adaptive_avg_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.adaptive_max_pool1d(x(1, 2, 4), 2)", "F.adaptive_max_pool2d(x(1, 2, 4, 4), 2)", "F.adaptive_max_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.fractional_max_pool2d(x(1, 2, 4, 4), 2, output_size=2)", "F.fractional_max_pool3d(x(1, 2, 4, 4, 4), 2, output_size=2)",
    "F.max_unpool1d(x(1, 1, 2), i(1, 1, 2), 2)", "F.max_unpool2d(x(1, 1, 2, 2), i(1, 1, 2, 2), 2)",
    "F.max_unpool3d(x(1, 1, 2, 2, 2), i(1, 1, 2, 2, 2), 2)", "F.lp_pool2d(x(1, 2, 4, 4), 2, 2)",
    "F.pad(x(1, 4), (1, 1), mode='reflect')", "F.pad(x(1, 4, 4), (1, 1, 1, 1), mode='reflect')",
    "F.pad(x(1, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='reflect')", "F.pad(x(1, 4), (1, 1), mode='replicate')",
    "F.pad(x(1, 4, 4), (1, 1, 1, 1), mode='replicate')", "F.pad(x(1, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='replicate')",
    "F.pad(x(1, 4), (1, 1), mode='circular')", "F.pad(x(4), (1, 1))",
    "F.batch_norm(x(2, 4), None, None, y(4), y(4), True)", "F.instance_norm(x(2, 4, 3))", "F.local_response_norm(x(1, 4, 3), 2)",
]  # fmt: skip

# Factorizations and solutions: float32 on the CPU.
MATRICES = [
    "p.cholesky_inverse(e(3))", "p.cholesky_solve(x(3, 2), f(3))", "p.geqrf(e(3))", "p.inverse(e(3))",
    "p.linalg.cholesky(e(3))", "p.linalg.cholesky_ex(e(3))", "p.linalg.cond(e(3))", "p.linalg.cond(e(3), 'fro')",
    "p.linalg.eigh(e(3))", "p.linalg.eigvalsh(e(3))", "p.linalg.householder_product(e(3), y(3))", "p.linalg.inv(e(3))",
    "p.linalg.inv_ex(e(3))", "p.linalg.lstsq(e(3), y(3, 2))", "p.linalg.matrix_rank(e(3))", "p.linalg.matrix_rank(e(3), 0.1)",
    "p.linalg.matrix_rank(e(3), atol=0.1)", "p.linalg.qr(e(3))", "p.linalg.solve(e(3), y(3, 2))", "p.linalg.svd(e(3))",
    "p.linalg.svdvals(e(3))", "p.linalg.tensorinv(e(3).reshape(3, 3), 1)", "p.linalg.tensorsolve(e(3), y(3))",
    "p.lu_solve(x(3, 2), f(3), i(3).int() + 1)", "p.orgqr(e(3), y(3))", "p.ormqr(e(3), y(3), y(3, 2))", "p.pinverse(e(3))",
    "p.svd(e(3))", "p.triangular_solve(x(3, 2), f(3))", "p.linalg.matrix_sqrth(e(3))", "p.linalg.matrix_power(e(3), 2)",
    "p.linalg.det(e(3))", "p.linalg.slogdet(e(3))", "p.linalg.pinv(e(3))", "p.logdet(e(3))",
]  # fmt: skip

# What is left as it is given.
OTHERS = [
    *(f"p.{name}(x(4))" for name in ("sqrt", "sin", "cos", "tanh", "sigmoid", "abs", "neg", "erf", "atan", "mean", "std", "var")),
    *(f"F.{name}(x(4))" for name in ("relu", "gelu", "silu", "mish", "elu", "selu", "hardswish", "logsigmoid", "softsign", "glu")),
    "F.embedding(i(3), x(4, 2))", "F.embedding_bag(i(2, 3), x(4, 2))", "F.dropout(x(4), 0.5)", "F.normalize(x(3, 4))",
    "p.amax(x(4))", "p.cumsum(i(4), 0)", "p.sum(i(4))", "F.one_hot(i(3), 4)", "p.nn.functional.fold(x(1, 8, 12), (4, 5), (2, 2))",
    "p.nn.functional.unfold(x(1, 2, 4, 4), 2)", "p.std_mean(x(4))", "p.var_mean(x(4))", "p.median(x(4))", "p.sort(x(4))",
]  # fmt: skip

# Recurrent layers, with states of their own.
LAYERS = [
    *(f"p.nn.{name}(3, 4, device=device)(x(2, 1, 3))" for name in ("LSTM", "GRU", "RNN")),
    *(f"p.nn.{name}(3, 4, device=device)(x(2, 3))" for name in ("LSTMCell", "GRUCell", "RNNCell")),
    "p.nn.Linear(3, 4, device=device)(x(2, 3))",
    "p.nn.MultiheadAttention(4, 2, device=device)(x(3, 1, 4), x(3, 1, 4), x(3, 1, 4))",
    "p.nn.TransformerEncoderLayer(4, 2, 8, device=device)(x(3, 1, 4))",
    "p.nn.Conv2d(2, 3, 2, device=device)(x(1, 2, 4, 4))",
    "p.nn.BatchNorm2d(2, device=device)(x(2, 2, 4, 4))",
    "p.nn.LayerNorm(4, device=device)(x(2, 4))",
    "p.nn.Embedding(4, 2, device=device)(i(3))",
]

# By the device's kind, the dtypes that PyTorch casts to.
REGIONS = [("cpu", "bfloat16"), ("cpu", "float16"), ("cuda", "float16"), ("cuda", "bfloat16")]

# What the stand-ins for a GPU cannot tell: PyTorch's fake tensors take halves for factorizations, other dtypes side by side in
# some operations, and no lengths as numbers, all of which its kernels refuse or take; the dry run has no values to read.
NOT_ON_CUDA = {
    *MATRICES, "p.quantile(x(4), 0.5)", "p.quantile(x(4), x(2))", "p.nanquantile(x(4), 0.5)", "p.nanquantile(x(4), x(2))",
    "F.multilabel_margin_loss(x(3, 4), i(3, 4))", "F.one_hot(i(3), 4)", "F.ctc_loss(x(5, 1, 4), i(1, 2) + 1, (5,), (2,))",
    "p.linalg.cross(x(3), y(3))", "p.index_copy(x(4), 0, i(1), y(1))", "F.avg_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.batch_norm(x(2, 4), None, None, y(4), y(4), True)",
} - {"p.linalg.matrix_sqrth(e(3))"}  # fmt: skip

CALLS = [*PRODUCTS, *UNARY, *LOSSES, *WIDEST, *IMAGES, *MATRICES, *OTHERS, *LAYERS]


def calls(kind: str) -> list[str]:
    """The calls that are compared on devices of that kind."""
    return [call for call in CALLS if kind == "cpu" or call not in NOT_ON_CUDA]


def named(package: Any, device: Any, lower: str, first: str, others: str) -> dict[str, Any]:
    """What the texts may use."""
    dtypes = [getattr(package, lower if name == "lower" else name) for name in (first, others)]

    def floats(dtype: Any) -> Any:
        # Below 1, so that it lies in every function's domain.
        return lambda *shape: package.full(shape, 0.5, dtype=dtype, device=device)

    def units(dtype: Any) -> Any:
        return lambda size: package.eye(size, dtype=dtype, device=device)

    return {
        "p": package, "F": package.nn.functional, "device": device,
        "x": floats(dtypes[0]), "y": floats(dtypes[1]), "e": units(dtypes[0]), "f": units(dtypes[1]),
        "i": lambda *shape: package.zeros(shape, dtype=package.int64, device=device),
    }  # fmt: skip


def answer(call: str, names: dict[str, Any]) -> list[str] | str:
    """The dtypes of a call's results, by name; `absent` if there is no such function, `refused` if it raises."""
    try:
        results = eval(call, names)
    except AttributeError:
        return "absent"
    except Exception:  # noqa: BLE001 - that it is refused is the answer
        return "refused"
    return [str(one.dtype).split(".")[-1] for one in _flat(results)]


def answers(call: str, package: Any, kind: str, lower: str) -> list[list[str] | str]:
    """What a package answers for each pair of dtypes; the region is the caller's."""
    device: Any = kind
    if kind == "cuda" and hasattr(package, "dry"):
        device = package.device("dry:h200")
    return [answer(call, named(package, device, lower, *operands)) for operands in OPERANDS]


def difference(call: str, kind: str, lower: str, expected: list[Any], package: Any) -> str | None:
    """What Plimsoll answers otherwise than PyTorch did, in words. What PyTorch refuses may be taken here."""
    if kind == "cuda":
        # Opened first: without a GPU, or a device that is cast for as one, a region for CUDA is off.
        package.empty(0, device="dry:h200")
    with package.autocast(kind, getattr(package, lower)):
        found = answers(call, package, kind, lower)
    for operands, want, have in zip(OPERANDS, expected, found, strict=True):
        # Modules have weights of float32, beside which only PyTorch's fake tensors take float64.
        fake = operands[0] == "float64" and "p.nn." in call
        banned = kind == "cuda" and "binary_cross_entropy(" in call
        if want != have and not fake and (want != "refused" or banned):
            return f"{call} of {' and '.join(operands)} gives {have}, in PyTorch {want}"
    return None


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return [value] if hasattr(value, "dtype") else []
