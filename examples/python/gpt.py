"""A small GPT that learns to add: text of sums such as `3+4=7;`, one character after the other.

Two things keep it small. Blocks are checkpointed: backward computes their insides again. And the loss is made of the
hidden states at once, so that the scores of all characters never exist. `python gpt.py --steps 150 --device cpu`"""

import argparse
import random

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F
from plimsoll.utils.checkpoint import checkpoint

CHARACTERS = "0123456789+=;"


class Block(nn.Module):
    """Attention to what came before, then two linear layers, each with a way around it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class GPT(nn.Module):
    """Hidden states of characters; the table of characters also scores the next one."""

    def __init__(self, context, width, heads, layers):
        super().__init__()
        self.characters, self.places = nn.Embedding(len(CHARACTERS), width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for table in (self.characters, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, text):
        x = self.characters(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.norm(x)


def sums(count):
    """Text of random sums, as numbers of characters."""
    numbers = random.Random(0)
    pairs = [(numbers.randrange(10), numbers.randrange(10)) for _ in range(count)]
    return [CHARACTERS.index(c) for a, b in pairs for c in f"{a}+{b}={a + b};"]


class Training:
    """The model, its optimizer and the text on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, context=24, width=48, heads=4, layers=2, batch=16):
        pm.manual_seed(0)
        self.context, self.batch = context, batch
        self.text = pm.tensor(sums(2000)).to(device).mark_input()
        self.window = pm.arange(context + 1, device=device)
        self.model = GPT(context, width, heads, layers).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=3e-3)

    def step(self):
        """One step on random pieces of the text; gives its loss."""
        last = self.text.shape[0] - self.context
        starts = pm.randint(last, (self.batch, 1), device=self.text.device)
        pieces = self.text[starts + self.window].mark_input()
        self.optimizer.zero_grad()
        hidden = self.model(pieces[:, :-1]).flatten(0, 1)
        loss = F.linear_cross_entropy(hidden, self.model.characters.weight, pieces[:, 1:].reshape(-1))
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def report(device, settled):
    """Where the memory was when the most was in use, and whether it stood still from step 100 on."""
    for kind, size in pm.memory_by_kind(device, peak=True).items():
        print(f"{kind:>16}  {size:>10,} bytes at the peak")
    now = pm.memory_allocated(device)
    if settled is not None:
        print(f"in use after step 100: {settled:,} bytes, at the end: {now:,}")
        assert now == settled, "the bytes in use have changed"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args(arguments)
    # On the CPU a device of its own, so that nobody else's bytes are counted.
    device = pm.private_cpu() if options.device == "cpu" else options.device
    training, settled = Training(device), None
    losses = []
    for step in range(options.steps):
        losses.append(training.step().item())  # a number: the tensor would keep its memory
        if step == 99:
            settled = pm.memory_allocated(device)
        if step % 25 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    report(device, settled)
    return losses


if __name__ == "__main__":
    main()
