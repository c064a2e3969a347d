import torch
import torch.nn.functional as F


def f(model, x, y, optimizer):
    h = model(x)
    h = F.relu(h, inplace=True)
    h += 1
    h = h.clamp_(max=6)
    loss = F.mse_loss(h, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
