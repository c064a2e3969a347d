import torch


def saliency(model, loader, criterion, device):
    maps = []
    for x, y in loader:
        x = x.to(device).requires_grad_(True)
        loss = criterion(model(x), y.to(device))
        loss.backward()
        maps.append(x.grad)  # expect: features-on-device
    return maps


def unread(model, loader, criterion):
    seen = []
    for x, y in loader:
        x.requires_grad_()
        loss = criterion(model(x), y)
        loss.backward()
        seen.append(x.grad.clone())  # expect: features-on-device
        print(len(seen))
