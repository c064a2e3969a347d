"""A list that is cut to its last ten."""
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recent = []
    for _ in range(80):
        out = model(torch.randn(16, 64))
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        recent = (recent + [out.detach()])[-10:]


main()
