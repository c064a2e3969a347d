"""A layer is added in every forward."""
# kind: parameter
# holder: local `model`._modules['layers']
import torch


class Grows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(32, 32)
        self.layers = torch.nn.ModuleList()

    def forward(self, x):
        self.layers.append(torch.nn.Linear(32, 32))  # made
        return self.first(x)


def main():
    model = Grows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(8, 32)).sum().backward()
        optimizer.step()


main()
