"""Pinned segments: small results that outlive large neighbours keep nearly empty segments, long after those are gone."""
import torch


def prepare():
    scratch, results = [], []
    for _ in range(10):
        scratch.append(torch.empty(8 << 20, dtype=torch.uint8, device="cuda"))
        results.append(torch.empty(3 << 19, dtype=torch.uint8, device="cuda"))
        scratch.append(torch.empty(8 << 20, dtype=torch.uint8, device="cuda"))
    return results


def main():
    results = prepare()
    for _ in range(20):
        x = torch.randn(1 << 16, device="cuda")
        y = x.exp()
    return results, y
