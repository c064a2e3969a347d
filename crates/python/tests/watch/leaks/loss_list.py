"""A loss is kept after backward: only the nodes of its graph stay."""
# kind: graph nodes on the host
# holder: local `losses` of train()
import torch


def train():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 16)).pow(2).mean()  # made
        loss.backward()
        optimizer.step()
        losses.append(loss)


train()
