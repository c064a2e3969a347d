"""A metaclass writes down every instance of its classes."""
# kind: value
# holder: instances
import torch


class Registered(type):
    instances = []

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        Registered.instances.append(made)
        return made


class Batch(metaclass=Registered):
    def __init__(self, size):
        self.inputs = torch.randn(size, 16)  # made


def main():
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(Batch(32).inputs).sigmoid().mean().backward()
        optimizer.step()


main()
