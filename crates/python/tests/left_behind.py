"""What operations and steps of training leave behind: `left_behind.py operations|training COUNT` does that many and prints, as
JSON, Python objects and bytes before and after. `test_left_behind.py` runs it with small numbers, and says how to run it at length."""

import gc
import json
import sys
import time

import plimsoll as pm
from plimsoll import nn


class Doubled(pm.autograd.Function):
    """A function of Python's own, in graphs beside the others."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 + 0 * x


class Marked(pm.Tensor):
    """A class of the user's."""


def operations():
    """Some of everything that makes objects or memory. Gives back a round of it as a function that says how many operations it was."""
    x, y, index = pm.randn(8, 4), pm.randn(8, 4), pm.tensor([0, 3, 3])
    leaf = pm.randn(8, 4, requires_grad=True)
    marked = pm.randn(3).as_subclass(Marked)

    def round():
        z = x + y
        z *= 2
        z[1:3] = 0
        views = (z[0], z.t(), z.view(4, 8), z[z > 0], z[index], *z.split(2))
        numbers = (z.sum().item(), z.argmax().item(), z.tolist(), z.mean(0).shape)
        kept = z.clone()
        kept.note = "an attribute"
        handle = leaf.register_hook(lambda grad: grad * 1)
        (Doubled.apply(leaf * z).tanh().sum() + leaf.pow(2).mean()).backward()
        handle.remove()
        leaf.grad = None
        with pm.no_grad():
            leaf.add_(z, alpha=0)
        assert type(marked + 1) is Marked
        try:
            x @ y
        except RuntimeError as error:
            assert "multiply" in str(error)
        return len(views) + len(numbers) + 14  # and those of backward

    return round


def training():
    """A small network that learns. Gives back a step as a function."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = pm.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = pm.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    x, y = pm.randn(4, 8), pm.randn(4, 1)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        return 1

    return step


def resident_bytes():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def figures():
    """Objects that the collector knows, bytes that tensors and the allocator have, and what the process holds."""
    gc.collect()
    return {
        "objects": len(gc.get_objects()),
        "allocated_bytes": pm.memory_allocated(),
        "reserved_bytes": pm.memory_reserved(),
        "resident_bytes": resident_bytes(),
    }


def main(what, count):
    work = {"operations": operations, "training": training}[what]()
    # Caches fill first: of the interpreter, of the allocator, of the lines that ask for memory.
    for _ in range(300):
        work()
    # The first figures make objects of their own.
    figures()
    before, done, start = figures(), 0, time.perf_counter()
    while done < count:
        done += work()
    seconds = time.perf_counter() - start
    print(json.dumps({"before": before, "after": figures(), "done": done, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
