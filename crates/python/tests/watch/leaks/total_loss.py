"""A sum of losses carries the graph of every step."""
# kind: graph nodes on the host
# holder: local `total` of train()
import torch


def train():
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = 0.0
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 16)).tanh().pow(2).mean()
        loss.backward()
        optimizer.step()
        total = total + loss  # made


train()
