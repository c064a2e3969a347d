"""Each block of a model saves what it computed in a list of its own."""
# kind: value
# holder: local `model`._modules['blocks']._modules of main()
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(32, 32)
        self.saved = []

    def forward(self, x):
        y = self.query(x)  # made
        self.saved.append(y.detach())
        return y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(50):
        optimizer.zero_grad()
        model(torch.randn(16, 32)).square().mean().backward()
        optimizer.step()


main()
