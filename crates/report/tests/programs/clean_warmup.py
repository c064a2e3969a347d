"""Clean: the weights are trained part after part, so gradients and optimizer state appear late, once each."""
import torch
from torch import nn


def main():
    parts = nn.ModuleList(nn.Linear(512, 512) for _ in range(6)).cuda()
    for part in parts:
        part.requires_grad_(False)
    optimizer = torch.optim.Adam(parts.parameters())
    for part in reversed(parts):
        part.requires_grad_(True)
        for _ in range(3):
            x = torch.randn(64, 512, device="cuda")
            for layer in parts:
                x = torch.relu(layer(x))
            loss = x.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return parts, optimizer
