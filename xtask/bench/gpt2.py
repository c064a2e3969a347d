"""GPT-2 (124 million parameters, batch 16 x 1024) on `cuda`, by Plimsoll or by PyTorch: the same model, weights and
batches on both sides.

`python gpt2.py plimsoll|torch steps [VARIANT...]` measures training steps (PyTorch: eager, checkpointed, compiled,
autotuned; Plimsoll: plain, checkpointed); `python gpt2.py plimsoll|torch losses SEED TEXT RATE [moved]` trains for 200
batches of a text (plain or .gz) and prints every loss as JSON; `python gpt2.py compare TEXT [RATE]` runs both for three seeds and
prints by how much the mean losses of steps 151 to 200 differ, and by how much PyTorch's do if its first weights are
moved by 0.1 %: at rates at which that is near the bound, the comparison says nothing. PyTorch keeps float32 parameters
under autocast. Plimsoll keeps bfloat16 parameters with float32 copies in the optimizer, and norms' parameters float32."""

from __future__ import annotations

import gzip
import importlib
import json
import math
import re
import subprocess
import sys
import time
from collections import Counter

import numpy as np

SIDE = sys.argv[1]
IS_PLIMSOLL = SIDE == "plimsoll"
VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 50304, 1024, 768, 12, 12, 16
STEPS, WARM_UP, RATE = 200, 40, 3e-4

if SIDE != "compare":
    torch = importlib.import_module(SIDE)
    nn, F = torch.nn, torch.nn.functional
    checkpoint = importlib.import_module(SIDE + ".utils.checkpoint").checkpoint

    class Block(nn.Module):
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
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        """The mean loss of the next tokens; the table of tokens also scores them."""

        def __init__(self, checkpointed=False):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.checkpointed = checkpointed

        def forward(self, tokens, following):
            x = self.tokens(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
            x = self.norm(x).flatten(0, 1)
            if IS_PLIMSOLL:
                return F.linear_cross_entropy(x, self.tokens.weight, following.flatten())
            return F.cross_entropy(F.linear(x, self.tokens.weight), following.flatten())


def drawn(model, seed):
    """Weights of deviation 0.02 and biases of zero, from the same draws on both sides."""
    draws = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                values = draws.standard_normal(tuple(parameter.shape), dtype=np.float32) * np.float32(0.02)
                parameter.copy_(torch.from_numpy(values))
            elif name.endswith("bias"):
                parameter.zero_()
    return model


def made(seed, checkpointed=False):
    """The model on the GPU, and its optimizer."""
    model = drawn(Gpt(checkpointed), seed).to("cuda")
    if IS_PLIMSOLL:
        of_norms = [parameter for name, parameter in model.named_parameters() if "norm" in name]
        rounded = [parameter for name, parameter in model.named_parameters() if "norm" not in name]
        # The copies are the float32 weights, of which the parameters are the roundings.
        groups = [{"params": rounded, "master_weights": True}, {"params": of_norms}]
        optimizer = torch.optim.AdamW(groups, lr=RATE)
        optimizer.cast_parameters(torch.bfloat16)
        return model, optimizer
    return model, torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)


def stepping(model, optimizer):
    """One step on a batch; PyTorch's under autocast."""

    def step(tokens, following):
        optimizer.zero_grad(set_to_none=True)
        if IS_PLIMSOLL:
            loss = model(tokens, following)
        else:
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(tokens, following)
        loss.backward()
        optimizer.step()
        return loss

    return step


def measure(variant):
    """Rounds of twenty steps by the clock, after ten that warm up, and the most bytes allocated."""
    if not IS_PLIMSOLL:
        torch.set_float32_matmul_precision("high")
        torch._dynamo.reset()
    torch.cuda.empty_cache()
    model, optimizer = made(0, checkpointed=variant == "checkpointed")
    called = model
    if variant in ("compiled", "autotuned"):
        called = torch.compile(model, mode="max-autotune" if variant == "autotuned" else None)
    step = stepping(called, optimizer)
    text = torch.from_numpy(np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, CONTEXT + 1))).to("cuda")
    tokens, following = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    for _ in range(10):
        step(tokens, following)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(20):
            loss = step(tokens, following)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / 20 * 1e3)
    middle = sorted(rounds)[2]
    print(
        f"{SIDE:8} {variant:12} {middle:6.2f} ms a step ({min(rounds):.2f} to {max(rounds):.2f}), "
        f"{BATCH * CONTEXT / middle * 1e3:9,.0f} tokens/s, peak {torch.cuda.max_memory_allocated() / 1e9:.3f} GB, "
        f"loss {float(loss):.4f}",
        flush=True,
    )


def batches(path, seed):
    """Windows of a text at random places. Its tokens are words, marks and spaces, the most frequent first."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        words = re.findall(r"\w+|[^\w\s]|\s+", file.read())
    places = {word: at for at, (word, _) in enumerate(Counter(words).most_common(VOCABULARY - 1))}
    tokens = np.array([places.get(word, VOCABULARY - 1) for word in words], dtype=np.int64)
    draws = np.random.default_rng(seed)
    for _ in range(STEPS):
        starts = draws.integers(0, len(tokens) - CONTEXT - 1, BATCH)
        yield np.stack([tokens[start : start + CONTEXT + 1] for start in starts])


def losses(seed, path, rate, is_moved):
    """The loss of each of the steps, as a list in JSON; from weights that are moved a little, if so asked."""
    model, optimizer = made(seed)
    if is_moved:
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + 1e-3 * torch.randn_like(parameter))
    step = stepping(model, optimizer)
    found = []
    for at, batch in enumerate(batches(path, seed)):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (at + 1) / WARM_UP)
        batch = torch.from_numpy(batch).to("cuda")
        found.append(step(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()).detach())
    print(json.dumps([float(loss) for loss in found]))


def compare(path, rate):
    """Three seeds on both sides, and on PyTorch's from weights that are moved a little."""
    is_right = True
    for seed in range(3):
        means, first = [], []
        for side, *moved in (["torch"], ["torch", "moved"], ["plimsoll"]):
            command = [sys.executable, __file__, side, "losses", str(seed), path, str(rate), *moved]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            means.append(sum(found[150:]) / len(found[150:]))
            first.append(found[0])
        theirs, moved, ours = means
        apart, by_itself = (abs(other - theirs) / theirs for other in (ours, moved))
        is_right &= apart <= 0.005 and math.isfinite(ours)
        print(
            f"seed {seed}: mean of 151 to 200: PyTorch {theirs:.4f}, Plimsoll {ours:.4f}, {apart:.3%} apart; PyTorch from "
            f"weights moved by 0.1 % {moved:.4f}, {by_itself:.3%} apart; first {first[0]:.4f} and {first[2]:.4f}",
            flush=True,
        )
    sys.exit(0 if is_right else 1)


if SIDE == "compare":
    compare(sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else RATE)
elif sys.argv[2] == "losses":
    losses(int(sys.argv[3]), sys.argv[4], float(sys.argv[5]), "moved" in sys.argv[6:])
else:
    for name in sys.argv[3:] or (["plain", "checkpointed"] if IS_PLIMSOLL else ["eager", "checkpointed", "compiled"]):
        measure(name)
