"""Leak: memory tokens go from segment to segment; the result of detach() is thrown away, so the graph of every segment stays."""
import torch
from torch import nn
import torch.nn.functional as F

class RecurrentMemoryLM(nn.Module):
    def __init__(self, vocab=2000, dim=256, slots=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.first_memory = nn.Parameter(torch.randn(1, slots, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)
        self.slots = slots

    def forward(self, tokens, memory):
        h = torch.cat([memory, self.embed(tokens)], dim=1)
        h = self.encoder(h)
        return self.head(h[:, self.slots:]), h[:, :self.slots]

def main():
    model = RecurrentMemoryLM().cuda().eval()
    memory = model.first_memory.expand(16, -1, -1)
    scores = []
    for segment in range(24):
        tokens = torch.randint(0, 2000, (16, 65), device="cuda")
        logits, memory = model(tokens[:, :-1], memory)
        memory.detach()  # meant: memory = memory.detach()
        nll = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        scores.append(nll.item())
    return model, memory, scores
