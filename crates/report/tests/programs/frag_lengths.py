"""Fragmentation: documents sorted by length; a half-precision copy of each encoding is kept and sits in a block that the next, longer one cannot use."""
import torch
from torch import nn

@torch.no_grad()
def build_bank(encoder):
    bank = []
    for i in range(24):
        length = 3200 + 160 * i
        tokens = torch.randn(length, 1024, device="cuda")
        hidden = encoder(tokens)
        bank.append(hidden.half())
    return bank

def main():
    encoder = nn.Sequential(nn.Linear(1024, 1024), nn.LayerNorm(1024)).cuda()
    bank = build_bank(encoder)
    probe = nn.Linear(1024, 1024).cuda()
    opt = torch.optim.SGD(probe.parameters(), lr=0.1)
    for step in range(20):
        features = bank[-1 - step % 4].float()
        loss = probe(features).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return encoder, bank, probe, opt
