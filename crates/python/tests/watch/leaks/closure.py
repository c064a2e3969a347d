"""A callback gathers values in a variable of the function that made it."""
# kind: value
# holder: closure variable `kept` of log()
import torch


def make_logger():
    kept = []

    def log(value):
        kept.append(value)

    return log


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(32, 32)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.log = make_logger()

    def step(self):
        out = self.model(torch.randn(32, 32))
        self.optimizer.zero_grad()
        out.sum().backward()
        self.optimizer.step()
        self.log(out.detach() + 1)  # made


trainer = Trainer()
for _ in range(40):
    trainer.step()
