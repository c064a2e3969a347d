"""A moving average of the weights, replaced in each step."""
import torch

model = torch.nn.Linear(64, 64)
average = {name: value.clone() for name, value in model.state_dict().items()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        average = {name: 0.9 * average[name] + 0.1 * value for name, value in model.state_dict().items()}
