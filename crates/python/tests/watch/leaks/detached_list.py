"""Detached outputs are kept in a list during training."""
# kind: value
# holder: local `features` of main()
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    features = []
    for _ in range(40):
        out = model(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        features.append(out.detach())


main()
