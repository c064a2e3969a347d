"""Its history grows until it is full."""
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 8)
x, y = torch.randn(256, 64), torch.randn(256, 8)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=1, history_size=100)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(60):
    optimizer.step(closure)
