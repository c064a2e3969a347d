import torch
from torch import nn


class Block(nn.Module):
    def forward(self, tokens):
        b, t = tokens.shape
        pos = torch.arange(0, t, dtype=torch.long).unsqueeze(0).to(tokens.device)
        mask = torch.ones(t, t).to(tokens.device)  # expect: create-then-move
        return pos, mask.tril()
