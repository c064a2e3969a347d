"""Right: one averaged copy of the model, updated in place; validation collects its outputs on the device and drops them."""
import copy
import torch
from torch import nn
import torch.nn.functional as F

@torch.no_grad()
def update(ema, net, decay=0.99):
    for average, weight in zip(ema.parameters(), net.parameters()):
        average.lerp_(weight, 1 - decay)

@torch.no_grad()
def validate(ema):
    outputs, labels = [], []
    for _ in range(8):
        outputs.append(ema(torch.randn(512, 256, device="cuda")))
        labels.append(torch.randint(0, 1000, (512,), device="cuda"))
    return (torch.cat(outputs).argmax(dim=1) == torch.cat(labels)).float().mean().item()

def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1000)).cuda()
    ema = copy.deepcopy(net).requires_grad_(False)
    opt = torch.optim.Adam(net.parameters())
    accuracy = []
    for epoch in range(4):
        for _ in range(8):
            x, y = torch.randn(512, 256, device="cuda"), torch.randint(0, 1000, (512,), device="cuda")
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
            update(ema, net)
        accuracy.append(validate(ema))
    return net, ema, opt, accuracy
