"""A generative adversarial network that learns a cloud of points in the plane.

Neither loss says how good the points are, for each network's loss depends on the other. What falls is the distance between the
means and deviations of generated and real points. `python gan.py --steps 300 --device cpu`"""

import argparse

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F

NOISE = 4  # numbers that a point is made of


def network(inputs, outputs, width):
    """Two linear layers."""
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


class Training:
    """Both networks and their optimizers on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, width=32, batch=128):
        pm.manual_seed(0)
        self.device, self.batch = device, batch
        self.generator, self.critic = network(NOISE, 2, width).to(device), network(2, 1, width).to(device)
        self.makes = optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.judges = optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.centre = pm.tensor([2.0, -1.0]).to(device).mark_input()
        self.spread = pm.tensor([0.5, 1.0]).to(device).mark_input()
        self.ones, self.zeros = pm.ones(batch, 1, device=device), pm.zeros(batch, 1, device=device)

    def generated(self):
        """Points that the generator makes of noise."""
        return self.generator(pm.randn(self.batch, NOISE, device=self.device).mark_input())

    def judge(self, points):
        """The critic's step: real points are to get 1, generated ones 0."""
        real = pm.randn(self.batch, 2, device=self.device).mul_(self.spread).add_(self.centre).mark_input()
        self.judges.zero_grad()
        loss = F.binary_cross_entropy_with_logits(self.critic(real), self.ones)
        loss = loss + F.binary_cross_entropy_with_logits(self.critic(points), self.zeros)
        loss.backward()
        self.judges.step()

    def step(self):
        """A step of each network; gives how far the generated points are from the real ones."""
        points = self.generated()
        self.judge(points.detach())  # the generator gets no gradient from it
        self.makes.zero_grad()
        self.critic.requires_grad_(False)  # nor the critic from the next backward
        F.binary_cross_entropy_with_logits(self.critic(points), self.ones).backward()
        self.critic.requires_grad_(True)
        self.makes.step()
        with pm.no_grad():
            return (points.mean(0) - self.centre).abs().sum() + (points.std(0) - self.spread).abs().sum()


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
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args(arguments)
    # On the CPU a device of its own, so that nobody else's bytes are counted.
    device = pm.private_cpu() if options.device == "cpu" else options.device
    training, settled = Training(device), None
    distances = []
    for step in range(options.steps):
        distances.append(training.step().item())  # a number: the tensor would keep its memory
        if step == 99:
            settled = pm.memory_allocated(device)
        if step % 50 == 0:
            print(f"step {step:4}  distance {distances[-1]:.4f}")
    print(f"distance {distances[0]:.4f} -> {distances[-1]:.4f}")
    report(device, settled)
    return distances


if __name__ == "__main__":
    main()
