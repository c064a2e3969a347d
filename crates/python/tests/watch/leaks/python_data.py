"""Tensors made of Python's own data are kept."""
# kind: value
# holder: local `rewards` of main()
import torch


def main():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rewards = []
    for step in range(50):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        rewards.append(torch.tensor([float(step)] * 512))  # made


main()
