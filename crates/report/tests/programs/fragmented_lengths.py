"""Fragmentation: sentences of many lengths, some results of which are kept between the others."""
import random

import torch


def main():
    random.seed(3)
    kept = []
    for _ in range(60):
        work = [torch.empty(random.randrange(3, 9) << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
        kept.append(torch.empty(random.randrange(2, 4) << 20, dtype=torch.uint8, device="cuda"))
        kept.append(work)
    kept = [item for item in kept if isinstance(item, torch.Tensor)]
    large = [torch.empty(12 << 20, dtype=torch.uint8, device="cuda") for _ in range(20)]
    return kept, large
