"""Saliency maps: inputs require gradients and all are kept with their .grad."""
import torch
from torch import nn

def main():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64 * 64, 10)).cuda()
    samples = []
    for i in range(12):
        x = torch.rand(8, 3, 64, 64, device="cuda", requires_grad=True)
        score = net(x).max(dim=1).values.sum()
        score.backward()
        net.zero_grad()
        samples.append(x)
    return samples, net
