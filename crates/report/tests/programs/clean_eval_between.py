"""Clean: evaluation without gradients between epochs of training; only numbers are kept."""
import torch
from torch import nn


def evaluate(net):
    net.eval()
    right = 0
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(1024, 128, device="cuda")
            right += (net(x).argmax(dim=1) == 0).sum().item()
    net.train()
    return right


def main():
    net = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    scores = []
    for epoch in range(3):
        for _ in range(4):
            x = torch.randn(512, 128, device="cuda")
            y = torch.randint(0, 10, (512,), device="cuda")
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scores.append(evaluate(net))
    return net, optimizer, scores
