"""Pinned segments: a small result that outlives its large neighbours keeps each segment from going back."""
import torch


def main():
    small = []
    for _ in range(12):
        work = [torch.empty(6 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
        small.append(torch.empty(3 << 19, dtype=torch.uint8, device="cuda"))
        extra = torch.empty(17 << 20, dtype=torch.uint8, device="cuda")
        small.append(work)
        del extra
    return [kept for kept in small if isinstance(kept, torch.Tensor)]
