"""Checkpointed gradients are the plain ones bit for bit on the CPU: over modules of every kind, dropout and mixed precision among
them, whole, in parts and inside one another."""

import pytest

import plimsoll as pm
from plimsoll import nn
from plimsoll.utils.checkpoint import checkpoint, checkpoint_sequential


class Residual(nn.Module):
    """What a model has beside stacked modules: a branch, a buffer and results that are used twice."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.dropout = nn.Dropout(0.4)
        self.register_buffer("scale", pm.full((8,), 0.5))

    def forward(self, x):
        y = self.dropout(self.down(nn.functional.gelu(self.up(self.norm(x)))))
        return x * self.scale + y * y.sigmoid()


class First(nn.Module):
    """The first result of a module that gives several."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)

    def forward(self, x):
        return self.module(x, x, x, need_weights=False)[0]


ROWS = (5, 8)
STEPS = (3, 5, 8)
IMAGES = (2, 3, 8, 8)

MODULES = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 8)), ROWS),
    "residual": (Residual, ROWS),
    "batch norm": (lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.RReLU(), nn.AlphaDropout(0.2)), ROWS),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(), nn.Dropout2d(0.3), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.LazyLinear(8),
        ),
        IMAGES,
    ),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.InstanceNorm2d(4, affine=True), nn.ELU()), IMAGES),
    "LSTM": (lambda: First(nn.LSTM(8, 8, 2, dropout=0.3)), STEPS),
    "GRU": (lambda: First(nn.GRU(8, 8, 2, dropout=0.3, bidirectional=True)), STEPS),
    "attention": (Attention, STEPS),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2), STEPS),
    "encoder, norm first": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, norm_first=True), STEPS),
}  # fmt: skip


def bits(tensor):
    return None if tensor is None else (str(tensor.dtype), tuple(tensor.shape), tensor.detach().view(pm.uint8).numpy().tobytes())


def run(make, shape, call, lower=None):
    """The bits of the result, of all gradients, and of the random numbers after it."""
    pm.manual_seed(0)
    module = make()
    x = pm.randn(shape)
    module(x)
    module.zero_grad()
    x.requires_grad_()
    pm.manual_seed(1)
    with pm.autocast("cpu", lower or pm.bfloat16, enabled=lower is not None):
        result = call(module, x)
    (result.float() * pm.linspace(-1, 2, result.numel()).view(result.shape)).sum().backward()
    return [bits(result), bits(x.grad), *(bits(param.grad) for param in module.parameters()), pm.get_rng_state().tolist()]


def plain(module, x):
    return module(x)


@pytest.mark.parametrize("lower", [None, pm.bfloat16], ids=["float32", "autocast"])
@pytest.mark.parametrize("use_reentrant", [False, True], ids=["", "reentrant"])
@pytest.mark.parametrize("name", MODULES)
def test_gradients_have_the_same_bits(name, use_reentrant, lower):
    make, shape = MODULES[name]
    expected = run(make, shape, plain, lower)
    assert sum(one is not None for one in expected) > 3
    assert run(make, shape, lambda module, x: checkpoint(module, x, use_reentrant=use_reentrant), lower) == expected


@pytest.mark.parametrize("name", [name for name, (make, _) in MODULES.items() if isinstance(make(), nn.Sequential)])
def test_in_segments_they_have_too(name):
    make, shape = MODULES[name]
    expected = run(make, shape, plain)
    for segments in (2, 3):
        parts = lambda module, x: checkpoint_sequential(module, segments, x, use_reentrant=False)  # noqa: B023, E731
        assert run(make, shape, parts) == expected


@pytest.mark.parametrize("name", MODULES)
def test_inside_one_another_they_have_too(name):
    make, shape = MODULES[name]

    def nested(module, x):
        inner = lambda x: checkpoint(module, x, use_reentrant=False)  # noqa: E731
        return checkpoint(inner, x, use_reentrant=False)

    assert run(make, shape, nested) == run(make, shape, plain)


def test_other_random_numbers_are_seen():
    make, shape = MODULES["perceptron"]

    def drawn_before(module, x):
        pm.rand(1)
        return module(x)

    assert run(make, shape, drawn_before) != run(make, shape, plain)
