"""Out of memory: training on crops is fine, then a full image is evaluated without no_grad and its activations do not fit."""
import torch
from torch import nn
import torch.nn.functional as F

def make_net(width=32, depth=4):
    layers = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, nn.Conv2d(width, 2, 1)).cuda()

def evaluate(net, size):
    net.eval()
    image = torch.rand(1, 3, size, size, device="cuda")
    logits = net(image)
    return logits.argmax(dim=1).float().mean().item()

def main():
    torch.cuda.set_per_process_memory_fraction(3 * (1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    net = make_net()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for step in range(15):
        crops = torch.rand(8, 3, 96, 96, device="cuda")
        masks = torch.randint(0, 2, (8, 96, 96), device="cuda")
        loss = F.cross_entropy(net(crops), masks)
        opt.zero_grad()
        loss.backward()
        opt.step()
    try:
        score = evaluate(net, 2048)
    except torch.OutOfMemoryError as error:
        score = str(error)
    return net, opt, score
