import torch


def saliency(model, loader, device):
    model.eval()
    maps = []
    for x, y in loader:
        x = x.to(device).requires_grad_(True)
        score = model(x).gather(1, y.view(-1, 1).to(device)).sum()
        grad, = torch.autograd.grad(score, x)
        maps.append(grad.abs().cpu())
    return torch.cat(maps)
