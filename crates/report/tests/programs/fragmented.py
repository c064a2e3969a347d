"""Fragmentation: long-lived blocks between short-lived ones; a third of the memory is free and in pieces."""
import torch


def main():
    keep, drop = [], []
    for _ in range(40):
        drop.append(torch.empty(6 << 20, dtype=torch.uint8, device="cuda"))
        keep.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
    drop.clear()
    wide = [torch.empty(9 << 20, dtype=torch.uint8, device="cuda") for _ in range(12)]
    return keep, wide
