"""Three tasks take turns; each has a head and an optimizer of its own that come when it first has its turn."""
import itertools
import torch


class MultiTask:
    def __init__(self):
        self.body = torch.nn.Linear(32, 64)
        self.heads, self.optimizers = {}, {}

    def setup(self, task):
        self.heads[task] = torch.nn.Linear(64, 8)
        self.optimizers[task] = torch.optim.Adam([*self.body.parameters(), *self.heads[task].parameters()])

    def step(self, task, x):
        if task not in self.heads:
            self.setup(task)
        loss = self.heads[task](torch.relu(self.body(x))).square().mean()
        self.optimizers[task].zero_grad()
        loss.backward()
        self.optimizers[task].step()


def schedule():
    yield from itertools.repeat("depth", 15)
    yield from itertools.islice(itertools.cycle(["depth", "edges"]), 20)
    yield from itertools.islice(itertools.cycle(["depth", "edges", "normals"]), 45)


learner = MultiTask()
for task in schedule():
    learner.step(task, torch.randn(16, 32))
