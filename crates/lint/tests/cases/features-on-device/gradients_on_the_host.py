import torch


def saliency(model, loader, criterion, device):
    maps = []
    for x, y in loader:
        x = x.to(device).requires_grad_(True)
        criterion(model(x), y.to(device)).backward()
        maps.append(x.grad.cpu())
    return maps


def norms(model, loader, criterion, device):
    found = []
    for x, y in loader:
        x = x.to(device).requires_grad_(True)
        criterion(model(x), y.to(device)).backward()
        found.append(x.grad.norm())
    return found


def somewhere(model, loader, criterion):
    maps = []
    for x, y in loader:
        x.requires_grad_()
        criterion(model(x), y).backward()
        maps.append(x.grad)
    return maps


def of_layers(model, x, y, criterion):
    criterion(model(x), y).backward()
    grads = []
    for p in model.parameters():
        grads.append(p.grad)
    return grads


def one_step(model, xs, y, criterion, device):
    for step in range(10):
        grads = []
        x = xs.to(device).requires_grad_(True)
        criterion(model(x), y).backward()
        grads.append(x.grad)
