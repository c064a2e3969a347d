import torch
import torch.nn as nn
import torch.nn.functional as F


def views(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return torch.stack(outputs)


def step(model, loader, optimizer, target):
    optimizer.zero_grad()
    loss = F.mse_loss(views(model, loader), target)
    loss.backward()
    optimizer.step()


def training_outputs(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs


def gradients(model, loader):
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return torch.autograd.grad(torch.cat(outputs).sum(), list(model.parameters()))


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(3, 3)

    def parts(self, loader):
        outputs = []
        for x in loader:
            outputs.append(self.model(x))
        return outputs
