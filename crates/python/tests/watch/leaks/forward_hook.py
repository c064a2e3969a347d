"""A forward hook keeps what every call returns."""
# kind: value
# holder: global `captured`
import torch

captured = {"relu": []}
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
model[1].register_forward_hook(lambda module, inputs, output: captured["relu"].append(output.detach().clone()))  # made
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(16, 32)).sum().backward()
    optimizer.step()
