import torch

for it in range(1000):
    loss = ((net(x) - y) ** 2).mean()
    for p in net.parameters():
        p.grad = None
    loss.backward()
    optimizer.step()
