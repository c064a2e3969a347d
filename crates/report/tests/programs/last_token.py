"""Leak: a search index takes the last token's vector of each document, hidden[:, -1] under no_grad: the view keeps all tokens."""
import torch
from torch import nn

class TextEncoder(nn.Module):
    def __init__(self, vocab=5000, dim=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens):
        x = self.embed(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.proj(y)

class SearchIndex:
    def __init__(self, encoder):
        self.encoder = encoder
        self.vectors = []

    @torch.no_grad()
    def add(self, tokens):
        hidden = self.encoder(tokens)
        self.vectors.append(hidden[:, -1])

    @torch.no_grad()
    def query(self, tokens, k=5):
        q = self.encoder(tokens)[:, -1]
        return (q @ torch.cat(self.vectors).T).topk(k).indices.tolist()

def main():
    index = SearchIndex(TextEncoder().cuda().eval())
    for _ in range(30):
        index.add(torch.randint(0, 5000, (64, 200), device="cuda"))
    hits = index.query(torch.randint(0, 5000, (2, 20), device="cuda"))
    return index, hits
