"""Sparse gradients."""
import torch

table = torch.nn.Embedding(500, 16, sparse=True)
optimizer = torch.optim.SparseAdam(list(table.parameters()))
for _ in range(50):
    optimizer.zero_grad()
    table(torch.randint(0, 500, (16,))).pow(2).sum().backward()
    optimizer.step()
