"""Fragmentation: many buffers of 12 MB, every other one freed, then larger ones are needed."""
import torch

def main():
    held = [torch.empty(3 << 20, device="cuda") for _ in range(40)]
    for i in range(0, 40, 2):
        held[i] = None
    big = [torch.empty(30 << 20, device="cuda") for _ in range(2)]
    return held, big
