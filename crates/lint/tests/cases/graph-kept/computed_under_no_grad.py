import torch


def sample(energy, x, steps):
    kept = []
    for step in range(steps):
        x = x.detach().requires_grad_()
        energy(x).sum().backward()
        with torch.no_grad():
            x = x - 0.01 * x.grad
        kept.append(x)
    return kept
