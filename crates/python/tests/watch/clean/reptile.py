"""A copy of the model is trained on each task and pulls the model towards itself."""
import copy
import random
import torch


def sine_task(rng):
    amplitude, phase = rng.uniform(0.1, 5), rng.uniform(0, 3)
    x = torch.rand(20, 1) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


def main():
    rng = random.Random(0)
    meta = torch.nn.Sequential(torch.nn.Linear(1, 40), torch.nn.Tanh(), torch.nn.Linear(40, 1))
    for _ in range(25):
        x, y = sine_task(rng)
        fast = copy.deepcopy(meta)
        inner = torch.optim.SGD(fast.parameters(), lr=0.02)
        for _ in range(4):
            inner.zero_grad()
            torch.nn.functional.mse_loss(fast(x), y).backward()
            inner.step()
        with torch.no_grad():
            for slow, quick in zip(meta.parameters(), fast.parameters()):
                slow.add_(0.1 * (quick - slow))


main()
