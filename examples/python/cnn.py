"""A convolutional network that tells horizontal bars from vertical ones in noisy images.

Images lie on the host, and a worker makes batches of them ahead. Batch normalization and dropout behave differently in
training and in evaluation: mind `train()` and `eval()`. `python cnn.py --steps 60 --device cpu`"""

import argparse

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F
from plimsoll.utils.data import DataLoader, TensorDataset

SIDE = 16  # pixels


def network():
    """Two convolutions, each with half the resolution behind it."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * (SIDE // 4) ** 2, 2),
    )  # fmt: skip


def bars(count):
    """Noise with one bright row, label 0, or one bright column, label 1; on the host."""
    labels = pm.randint(2, (count,))
    bar = (pm.arange(SIDE) == pm.randint(SIDE, (count, 1))).float()
    columns = bar.reshape(-1, 1, 1, SIDE).expand(-1, 1, SIDE, SIDE)
    rows = columns.transpose(2, 3)
    images = pm.randn(count, 1, SIDE, SIDE).mul_(0.5)
    images += pm.where(labels.reshape(-1, 1, 1, 1) == 1, columns, rows)
    return images.mark_input(), labels.mark_input()


def epochs(loader):
    """The batches of one epoch after the other."""
    while True:
        yield from loader


class Training:
    """The model and its optimizer on one device. It never looks at a value, so it also runs dry."""

    def __init__(self, device, batch=32, count=512):
        pm.manual_seed(0)
        self.device, self.batch = device, batch
        self.model = network().to(device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
        on_a_gpu = str(device).startswith("cuda")
        self.batches = epochs(DataLoader(
            TensorDataset(*bars(count)), batch, shuffle=True, num_workers=1, persistent_workers=True, pin_memory=on_a_gpu
        ))  # fmt: skip

    def images(self):
        """The next batch, on the device."""
        return [part.to(self.device, non_blocking=True).mark_input() for part in next(self.batches)]

    def step(self):
        """One step on a new batch; gives its loss."""
        images, labels = self.images()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def evaluate(self):
        """The share of new images that the model gets right."""
        images, labels = (part.to(self.device) for part in bars(self.batch))
        self.model.eval()
        with pm.inference_mode():
            right = self.model(images).argmax(1) == labels
        self.model.train()
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
    parser.add_argument("--steps", type=int, default=60)
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
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {100 * training.evaluate().item():.0f} % are right")
    report(device, settled)
    return losses


if __name__ == "__main__":
    main()
