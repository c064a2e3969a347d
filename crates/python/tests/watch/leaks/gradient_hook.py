"""A hook on a parameter keeps its gradients."""
# kind: gradient that is kept
# holder: global `gradients`
import torch

gradients = []
model = torch.nn.Linear(64, 64)
model.weight.register_hook(gradients.append)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).pow(2).sum().backward()  # made
    optimizer.step()
