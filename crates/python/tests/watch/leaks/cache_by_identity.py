"""A cache of embeddings is keyed by `id`, so it never hits; its bound is checked on the wrong table."""
# kind: value
# holder: .entries
from collections import OrderedDict
import torch


class EmbeddingCache:
    def __init__(self, most=16):
        self.most = most
        self.entries = OrderedDict()
        self.hits = OrderedDict()

    def get(self, x, compute):
        key = (id(x), len(self.entries))
        if key not in self.entries:
            self.entries[key] = compute(x)  # made
        if len(self.hits) > self.most:
            self.entries.popitem(last=False)
        return self.entries[key]


def main():
    encoder = torch.nn.Linear(32, 64).requires_grad_(False)
    head = torch.nn.Linear(64, 4)
    cache = EmbeddingCache()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(40):
        embedding = cache.get(torch.randn(16, 32), encoder)
        optimizer.zero_grad()
        head(embedding).square().mean().backward()
        optimizer.step()


main()
