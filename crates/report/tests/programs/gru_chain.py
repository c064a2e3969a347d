"""A recurrent cell's state is carried over batches without detach (no backward through old batches fails because retain_graph)."""
import torch
from torch import nn

def main():
    cell = nn.GRUCell(64, 256).cuda()
    head = nn.Linear(256, 10).cuda()
    h = torch.zeros(128, 256, device="cuda")
    with torch.enable_grad():
        for step in range(25):
            x = torch.randn(128, 64, device="cuda")
            h = cell(x, h)
            out = head(h).sum()
    return h, out
