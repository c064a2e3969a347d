"""Gradients of four micro-batches under autocast, through a scaler that is off on the host."""
import contextlib
import torch


def micro_batches(count):
    return ((torch.randn(16, 32), torch.randint(0, 8, (16,))) for _ in range(count))


class Accumulator:
    def __init__(self, model, every):
        self.model, self.every, self.seen = model, every, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)
        self.running = 0.0

    def feed(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y) / self.every
        self.scaler.scale(loss).backward()
        self.running += loss.detach()
        self.seen += 1
        if self.seen % self.every == 0:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)


accumulator = Accumulator(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)), 4)
with contextlib.closing(micro_batches(200)) as batches:
    for x, y in batches:
        accumulator.feed(x, y)
print(accumulator.seen)
