"""PyTorch's side and Plimsoll's Python side of `cargo xtask bench train`: `train_worker.py torch|plimsoll`.

One program for both, so that they compute the same: only the module's name differs. It reads `NAME STEPS` lines, takes that
many steps of training, and answers with the microseconds that they took; `train_worker.py torch peak NAME` tells how far the
process grew instead. Plimsoll's Rust side has the same names, in `crates/nn/examples/train_worker.rs`.

Inputs stay the same from step to step and learning rates are small: models that have learnt their inputs would have
gradients of denormal numbers, on which processors are slow."""

import importlib
import sys
import time

LIBRARY = sys.argv[1]
torch = importlib.import_module(LIBRARY)
nn = importlib.import_module(LIBRARY + ".nn")
optim = importlib.import_module(LIBRARY + ".optim")
F = importlib.import_module(LIBRARY + ".nn.functional")
checkpoint = importlib.import_module(LIBRARY + ".utils.checkpoint").checkpoint

torch.set_num_threads(2)

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 8192, 256, 256, 4, 4


def training(optimizer, loss_of):
    """A step of training, as everybody writes it."""

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp():
    model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 1000))
    x, y = torch.randn(64, 1000), torch.randn(64, 1000)
    return training(optim.Adam(model.parameters(), lr=1e-4, fused=True), lambda: F.mse_loss(model(x), y))


def tiny_mlp(fused):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    x, y = torch.randn(4, 8), torch.randn(4, 1)
    return training(optim.Adam(model.parameters(), lr=1e-5, fused=fused), lambda: F.mse_loss(model(x), y))


class Block(nn.Module):
    """Attention to what came before, then two linear layers, each with a way around it."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """The mean loss of the next tokens; the table of tokens also scores them."""

    def __init__(self, checkpointed):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.checkpointed = checkpointed
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens, following):
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.loss(self.norm(x).flatten(0, 1), following.flatten())

    def loss(self, x, following):
        # PyTorch's, without options, is `linear` and `cross_entropy`, one after the other.
        return F.linear_cross_entropy(x, self.tokens.weight, following)


class GptByScores(Gpt):
    """The same with the scores of all tokens in a tensor, on both sides."""

    def loss(self, x, following):
        return F.cross_entropy(F.linear(x, self.tokens.weight), following)


def gpt(kind, checkpointed):
    model = kind(checkpointed)
    tokens = torch.randint(0, VOCABULARY, (8, CONTEXT))
    following = torch.randint(0, VOCABULARY, (8, CONTEXT))
    return training(optim.AdamW(model.parameters(), lr=1e-4, fused=True), lambda: model(tokens, following))


def cnn():
    layers = []
    for source, target in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(source, target, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))
    images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    return training(
        optim.SGD(model.parameters(), lr=1e-4, fused=True), lambda: F.cross_entropy(model(images), labels)
    )


def lstm():
    model = nn.LSTM(256, 256, 2)
    x, y = torch.randn(64, 32, 256), torch.randn(64, 32, 256)
    return training(optim.Adam(model.parameters(), lr=1e-4, fused=True), lambda: F.mse_loss(model(x)[0], y))


WORK = {
    "mlp": mlp,
    "tiny_mlp": lambda: tiny_mlp(None),
    "tiny_mlp_fused": lambda: tiny_mlp(True),
    "gpt": lambda: gpt(Gpt, False),
    "gpt_checkpointed": lambda: gpt(Gpt, True),
    "gpt_by_scores": lambda: gpt(GptByScores, False),
    "cnn": cnn,
    "lstm": lstm,
}

# After these the caches of all libraries hold what they ever will.
PEAK_STEPS = 4


def resident_bytes(name):
    """A line of /proc/self/status."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))


def tell_peak(name):
    """What the process grew by at most, from when the library has taken a step of a model of a few bytes: what a library
    reads of its own code is not the model's."""
    WORK["tiny_mlp"]()()
    before = resident_bytes("VmRSS")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak from here on
    step = WORK[name]()
    for _ in range(PEAK_STEPS):
        step()
    print(resident_bytes("VmHWM") - before)


def serve():
    current, step = None, None
    for line in sys.stdin:
        name, _, count = line.strip().rpartition(" ")
        if name != current:
            step = None
            current, step = name, WORK[name]()
        start = time.perf_counter()
        for _ in range(int(count)):
            step()
        print((time.perf_counter() - start) * 1e6, flush=True)


if sys.argv[2:3] == ["peak"]:
    tell_peak(sys.argv[3])
else:
    serve()
