"""Clean: the keys and values of each token are kept in lists while an answer is made, and dropped with it."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(256, 768)

    def forward(self, token, past):
        query, key, value = self.project(token).chunk(3, dim=-1)
        past.append((key, value))
        keys = torch.stack([key for key, _ in past], dim=1)
        values = torch.stack([value for _, value in past], dim=1)
        weights = (keys @ query.unsqueeze(-1)).softmax(dim=1)
        return token + (weights * values).sum(dim=1)


@torch.no_grad()
def answer(layers, length):
    past = [[] for _ in layers]
    token = torch.randn(32, 256, device="cuda")
    for _ in range(length):
        for layer, own in zip(layers, past):
            token = layer(token, own)
    return token.sum().item()


def main():
    layers = nn.ModuleList(Layer() for _ in range(2)).cuda()
    for length in (12, 9, 14):
        answer(layers, length)
    return layers
