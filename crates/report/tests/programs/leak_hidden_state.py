"""Leak: the hidden state is carried from step to step without detach, so each backward goes through all steps."""
import torch
from torch import nn


def main():
    cell = nn.GRUCell(128, 512).cuda()
    head = nn.Linear(512, 1).cuda()
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    hidden = torch.zeros(256, 512, device="cuda")
    for _ in range(8):
        x = torch.randn(256, 128, device="cuda")
        hidden = cell(x, hidden)
        loss = head(hidden).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
    return cell, head, hidden
