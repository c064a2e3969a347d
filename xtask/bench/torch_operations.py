"""PyTorch's side of `cargo xtask bench operations`: the same work under the same names as the test kit's `workloads.rs`."""

import torch
import torch.nn.functional as F


def normal(*sizes):
    return torch.randn(*sizes)


def square():
    return normal(4096, 4096)


def whole(limit, *sizes):
    return torch.randint(0, limit, sizes)


def one(x, function):
    return lambda: function(x)


def step(leaves, forward):
    """Forward and backward."""
    for leaf in leaves:
        leaf.requires_grad_()
    given = forward(*leaves).detach().clone()
    return lambda: torch.autograd.grad(forward(*leaves), leaves, given)


def convolution(batch, source, target, side, groups, training):
    x, weight, bias = normal(batch, source, side, side), normal(target, source // groups, 3, 3), normal(target)
    if training:
        return step([x, weight, bias], lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=groups))
    return lambda: F.conv2d(x, weight, bias, padding=1, groups=groups)


def group_norm():
    return step([normal(64, 64, 64, 64), normal(64), normal(64)], lambda x, w, b: F.group_norm(x, 8, w, b))


def cross_entropy():
    target = whole(32_768, 4096)
    return step([normal(4096, 32_768)], lambda x: F.cross_entropy(x, target))


def batch_norm(x):
    """A step of training: forward and backward."""
    channels = x.shape[1]
    mean, var = torch.zeros(channels), torch.ones(channels)
    leaves = [x, torch.ones(channels), torch.zeros(channels)]
    return step(leaves, lambda x, weight, bias: F.batch_norm(x, mean, var, weight, bias, True))


def linear_cross_entropy(rows):
    target = whole(50_304, rows)
    return step([normal(rows, 768), normal(50_304, 768) * 0.02], lambda x, w: F.cross_entropy(F.linear(x, w), target))


def lstm(steps):
    network = torch.nn.LSTM(256, 256, 2)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    x, weights = normal(steps, 32, 256).requires_grad_(), list(network.parameters())
    given = network(x)[0].detach().clone()
    return lambda: torch.autograd.grad(network(x)[0], [x, *weights], given)


def attention():
    # A GPU is not busy with what a processor has enough of.
    on_gpu = torch.get_default_device().type == "cuda"
    sizes, dtype = ((16, 12, 1024, 64), torch.bfloat16) if on_gpu else ((4, 8, 1024, 64), torch.float32)
    return attend(sizes, dtype)


def attend(sizes, dtype=torch.float32):
    heads = [normal(*sizes).to(dtype) for _ in range(3)]
    return step(heads, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))


def embedding():
    rows = whole(50_000, 16_384)
    return step([normal(50_000, 512)], lambda table: F.embedding(rows, table))


def index_select():
    x, rows = square(), whole(4096, 4096)
    return lambda: x.index_select(0, rows)


def scatter_add():
    x, index, source = square(), whole(4096, 4096, 4096), square()
    return lambda: x.scatter_add(1, index, source)


def where():
    condition, x, other = square() > 0, square(), square()
    return lambda: torch.where(condition, x, other)


def lerp():
    x, end = square(), square()
    return lambda: x.lerp(end, 0.3)


def addcmul():
    x, a, b = square(), square(), square()
    return lambda: x.addcmul(a, b, value=0.5)


WORK = {
    "conv2d_64_forward": lambda: convolution(32, 64, 64, 56, 1, False),
    "conv2d_64": lambda: convolution(32, 64, 64, 56, 1, True),
    "conv2d_3_to_16": lambda: convolution(64, 3, 16, 32, 1, True),
    "conv2d_16_to_32": lambda: convolution(64, 16, 32, 32, 1, True),
    "conv2d_depthwise_96_forward": lambda: convolution(32, 96, 96, 56, 96, False),
    "conv2d_depthwise_96": lambda: convolution(32, 96, 96, 56, 96, True),
    "max_pool2d_64mb": lambda: step([normal(64, 64, 64, 64)], lambda x: F.max_pool2d(x, 2, 2)),
    "batch_norm_64mb": lambda: batch_norm(normal(64, 64, 64, 64)),
    "group_norm_64mb": group_norm,
    "cross_entropy_4096x32768": cross_entropy,
    "linear_cross_entropy_50304": lambda: linear_cross_entropy(4096),
    "attention_causal": attention,
    "lstm": lambda: lstm(64),
    "embedding_50000x512": embedding,
    "cumsum_64mb": lambda: one(square(), lambda x: x.cumsum(-1)),
    "topk_64mb": lambda: one(square(), lambda x: x.topk(50)[0]),
    "index_select_64mb": index_select,
    "scatter_add_64mb": scatter_add,
    "unique_64mb": lambda: one(whole(1_000_000, 8_388_608), torch.unique),
    "argmax_64mb": lambda: one(square(), lambda x: x.argmax(-1)),
    "where_64mb": where,
    "clamp_64mb": lambda: one(square(), lambda x: x.clamp(-0.5, 0.5)),
    "lerp_64mb": lerp,
    "addcmul_64mb": addcmul,
    "var_64mb": lambda: one(square(), lambda x: x.var(-1)),
    "logsumexp_64mb": lambda: one(square(), lambda x: x.logsumexp(-1)),
    "norm_64mb": lambda: one(square(), lambda x: torch.linalg.vector_norm(x, dim=-1)),
    # Looked at for their peaks of memory.
    "attention_8192": lambda: attend((1, 8, 8192, 64)),
    "conv2d_batch_256": lambda: convolution(256, 64, 64, 56, 1, True),
    "linear_cross_entropy_16384": lambda: linear_cross_entropy(16_384),
    "lstm_512": lambda: lstm(512),
}
