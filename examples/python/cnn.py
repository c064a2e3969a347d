"""A convolutional network that tells horizontal bars from vertical ones in noisy images.

Batch normalization and dropout behave differently in training and in evaluation: mind `train()` and `eval()`.
`python cnn.py --steps 60 --device cpu`"""

import argparse

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F

SIDE = 16  # pixels


def network():
    """Two convolutions, each with half the resolution behind it."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * (SIDE // 4) ** 2, 2),
    )  # fmt: skip


class Training:
    """The model, its optimizer and its data on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, batch=32):
        pm.manual_seed(0)
        self.device, self.batch = device, batch
        self.model = network().to(device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

    def images(self):
        """Noise with one bright row, label 0, or one bright column, label 1."""
        labels = pm.randint(2, (self.batch,), device=self.device).mark_input()
        place = pm.randint(SIDE, (self.batch, 1), device=self.device)
        bar = (pm.arange(SIDE, device=self.device) == place).float()
        columns = bar.reshape(-1, 1, 1, SIDE).expand(-1, 1, SIDE, SIDE)
        rows = columns.transpose(2, 3)
        images = pm.randn(self.batch, 1, SIDE, SIDE, device=self.device).mul_(0.5)
        images += pm.where(labels.reshape(-1, 1, 1, 1) == 1, columns, rows)
        return images.mark_input(), labels

    def step(self):
        """One step on a new batch; gives its loss."""
        images, labels = self.images()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def evaluate(self):
        """The share of images that the model gets right."""
        images, labels = self.images()
        self.model.eval()
        with pm.inference_mode():
            right = self.model(images).argmax(1) == labels
        self.model.train()
        return right.float().mean()


def report(device):
    """Where the memory was when the most was in use."""
    for kind, size in pm.memory_by_kind(device, peak=True).items():
        print(f"{kind:>16}  {size:>10,} bytes at the peak")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args(arguments)
    training = Training(options.device)
    losses = []
    for step in range(options.steps):
        losses.append(training.step().item())  # a number: the tensor would keep its memory
        if step % 20 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {100 * training.evaluate().item():.0f} % are right")
    report(options.device)
    return losses


if __name__ == "__main__":
    main()
