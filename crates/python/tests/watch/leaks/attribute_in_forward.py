"""A module remembers all its outputs."""
# kind: value
# holder: local `model`.attentions of main()
import torch


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(32, 32)
        self.attentions = []

    def forward(self, x):
        weights = self.query(x).softmax(-1)  # made
        self.attentions.append(weights)
        return weights @ x.transpose(0, 1)


def main():
    model = Attends()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(32, 32)).sum().backward()
        optimizer.step()


main()
