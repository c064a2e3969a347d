"""The Jacobian of each batch is kept for an average that could be a running one."""
# kind: value
# holder: `jacobians`
import torch
from torch.func import functional_call, jacrev

model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
jacobians = []


def outputs(parameters, x):
    return functional_call(model, parameters, (x,)).sum(0)


for _ in range(40):
    x = torch.randn(16, 8)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    jacobians.append(jacrev(outputs)(parameters, x)["weight"].repeat(4, 1, 1))  # made
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
