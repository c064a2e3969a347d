"""Three children of a model each keep a little under a name of their own: together it is enough to be told."""
# kind: value
# holder: local `model`._modules
import torch


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.alpha = torch.nn.Linear(16, 16), []

    def forward(self, x):
        y = self.linear(x)  # made
        self.alpha.append(y.detach())
        return y


class Second(First):
    def __init__(self):
        super().__init__()
        self.beta = []

    def forward(self, x):
        y = self.linear(x)  # made
        self.beta.append(y.detach())
        return y


class Third(First):
    def __init__(self):
        super().__init__()
        self.gamma = []

    def forward(self, x):
        y = self.linear(x)  # made
        self.gamma.append(y.detach())
        return y


def main():
    model = torch.nn.Sequential(First(), Second(), Third())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        model(torch.randn(10, 16)).square().mean().backward()
        optimizer.step()


main()
