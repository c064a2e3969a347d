"""Copies of the weights are kept by step on a class."""
# kind: value
# holder: class attribute Average.shadow
import torch


class Average:
    shadow = {}

    def update(self, model, step):
        copied = {name: value.detach().clone() for name, value in model.named_parameters()}  # made
        Average.shadow[step] = copied


model, average = torch.nn.Linear(50, 50), Average()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    model(torch.randn(4, 50)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    average.update(model, step)
