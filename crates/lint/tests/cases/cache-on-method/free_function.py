from functools import lru_cache

import torch


@lru_cache(maxsize=32)
def causal_mask(n: int, device: str):
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


class Config:
    @lru_cache
    def vocabulary(self):
        return open(self.path).read().split()
