"""Fragmentation: an image pyramid from small to large; a copy of a part of each level stays in the place of the level before."""
import torch
from torch import nn
import torch.nn.functional as F

@torch.no_grad()
def build_pyramid(photos, smallest=256, largest=832, step=24):
    strips = []
    for size in range(smallest, largest + 1, step):
        level = F.interpolate(photos, size=(size, size), mode="bilinear")
        strips.append(level[:, :, : size * 9 // 16].clone())  # the upper part only
    return strips

def main():
    strips = build_pyramid(torch.rand(16, 3, 256, 256, device="cuda"))
    model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(inplace=True), nn.Linear(2048, 1)).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for it in range(20):
        strip = strips[it % len(strips)]
        x = F.adaptive_avg_pool2d(strip, 16).mean(dim=1).flatten(1).repeat(1024, 1)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return strips, model, opt
