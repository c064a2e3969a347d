"""An LSTM that foretells the next value of sine waves, which go on from step to step.

The hidden state is carried over and detached: the wave goes on, and the graph ends with each step. Carried over as it is, the
second backward would fail, for the first one has freed what it needs. `python lstm.py --steps 100 --device cpu`"""

import argparse
import math

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F

FREQUENCY = 0.3  # radians from one value to the next


class Forecast(nn.Module):
    """The next value after each, and the state behind the last."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, values, state=None):
        hidden, state = self.lstm(values, state)
        return self.head(hidden), state


class Training:
    """The model, its optimizer and the waves on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, width=32, batch=16, length=20):
        pm.manual_seed(0)
        self.device, self.length, self.time = device, length, 0
        self.model = Forecast(width).to(device)
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-2)
        self.phases = pm.rand(batch, 1, device=device).mul_(math.tau).mark_input()
        self.state = None

    def waves(self):
        """The next piece of every wave, with one value more than the model sees: [batch, length + 1, 1]."""
        times = pm.arange(self.time, self.time + self.length + 1, device=self.device)
        self.time += self.length
        return (times * FREQUENCY + self.phases).sin_().unsqueeze(2).mark_input()

    def step(self):
        """One step on the next piece; gives its loss."""
        waves = self.waves()
        self.optimizer.zero_grad()
        foretold, state = self.model(waves[:, :-1], self.state)
        loss = F.mse_loss(foretold, waves[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.state = tuple(part.detach() for part in state)  # a tuple: each part by itself
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
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args(arguments)
    # On the CPU a device of its own, so that nobody else's bytes are counted.
    device = pm.private_cpu() if options.device == "cpu" else options.device
    training, settled = Training(device), None
    losses = []
    for step in range(options.steps):
        losses.append(training.step().item())  # a number: the tensor would keep its memory
        if step == 99:
            settled = pm.memory_allocated(device)
        if step % 20 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    report(device, settled)
    return losses


if __name__ == "__main__":
    main()
