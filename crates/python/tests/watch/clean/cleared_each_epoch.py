"""A list of an epoch's outputs that the next one begins anew."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(320, 32)), batch_size=16)
    for _ in range(5):
        outputs = []
        for (x,) in loader:
            out = model(x)
            optimizer.zero_grad()
            out.sum().backward()
            optimizer.step()
            outputs.append(out.detach())
        torch.cat(outputs).mean().item()


main()
