"""A list of an epoch's outputs that the next epoch goes on filling."""
# kind: value
# holder: local `outputs` of main()
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(160, 32)), batch_size=16)
    outputs = []
    for _ in range(5):
        for (x,) in loader:
            out = model(x)  # made
            optimizer.zero_grad()
            out.sum().backward()
            optimizer.step()
            outputs.append(out.detach())


main()
