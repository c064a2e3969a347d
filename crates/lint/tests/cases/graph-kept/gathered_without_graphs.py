import torch


@torch.no_grad()
def decorated(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs


def inner(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs


def caller(model, loader):
    with torch.inference_mode():
        return inner(model, loader)


def detached(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x).detach())
    return outputs


def labels(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x).argmax(1))
    return outputs


def frozen(model, loader):
    for p in model.parameters():
        p.requires_grad = False
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs
