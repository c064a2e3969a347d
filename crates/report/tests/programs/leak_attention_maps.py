"""Leak: the attention weights of every batch are kept for a picture, with the graph that made them."""
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(128, 128)
        self.key = nn.Linear(128, 128)
        self.maps = []

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        weights = scores.softmax(dim=-1)
        self.maps.append(weights)
        return weights @ x


def evaluate(net):
    for _ in range(8):
        x = torch.randn(16, 128, 128, device="cuda")
        net(x)


def main():
    net = Attend().cuda()
    evaluate(net)
    return net
