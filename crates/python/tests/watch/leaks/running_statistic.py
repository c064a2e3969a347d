"""A running mean of outputs carries the graph of all steps."""
# kind: activation kept by a graph
# holder: global `mean`
import torch

norm, model = torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = torch.zeros(64)
for _ in range(60):
    out = norm(model(torch.randn(32, 64)))  # made
    mean = 0.9 * mean + 0.1 * out.mean(0)
    optimizer.zero_grad()
    out.pow(2).mean().backward(retain_graph=True)
    optimizer.step()
