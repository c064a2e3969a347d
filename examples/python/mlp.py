"""A multilayer perceptron that learns in which pair of quadrants a point of the plane lies.

The plain training loop: zero the gradients, forward, backward, step; losses are kept as numbers, and evaluation runs
without recording. `python mlp.py --steps 200 --device cpu`"""

import argparse

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F


class Training:
    """The model, its optimizer and its data on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, width=32, batch=128):
        pm.manual_seed(0)
        self.device, self.batch = device, batch
        self.model = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        ).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-2)
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=400)

    def points(self):
        """Points, and 1 for each whose coordinates have the same sign."""
        points = pm.rand(self.batch, 2, device=self.device).mul_(2).sub_(1).mark_input()
        return points, (points.prod(1, keepdim=True) > 0).float().mark_input()

    def step(self):
        """One step on a new batch; gives its loss."""
        points, labels = self.points()
        self.optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(self.model(points), labels)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def evaluate(self):
        """The share of points that the model gets right."""
        points, labels = self.points()
        with pm.inference_mode():
            right = (self.model(points) > 0).float() == labels
            return right.float().mean()


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
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args(arguments)
    # On the CPU a device of its own, so that nobody else's bytes are counted.
    device = pm.private_cpu() if options.device == "cpu" else options.device
    training, settled = Training(device), None
    losses = []
    for step in range(options.steps):
        losses.append(training.step().item())  # a number: the tensor would keep its memory
        if step == 99:
            settled = pm.memory_allocated(device)
        if step % 50 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {100 * training.evaluate().item():.0f} % are right")
    report(device, settled)
    return losses


if __name__ == "__main__":
    main()
