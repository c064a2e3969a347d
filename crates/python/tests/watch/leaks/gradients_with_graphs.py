"""A penalty on the gradients' norm, by steps of the program's own: zeros are written into gradients that have graphs."""

# kind: activation kept by a graph
# holder: global `net`
import warnings

import torch

warnings.filterwarnings("ignore", message="Using backward")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
for _ in range(80):
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    loss = (net(x) - y).pow(2).mean()  # made
    loss.backward(create_graph=True)  # made
    penalty = sum(parameter.grad.pow(2).sum() for parameter in net.parameters())
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad.zero_()
