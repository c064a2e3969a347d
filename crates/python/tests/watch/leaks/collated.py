"""The function that makes batches keeps them."""
# kind: value
# holder: global `seen`
import torch
from torch.utils.data import DataLoader

seen = []


def collate(rows):
    batch = torch.stack(rows)  # made
    seen.append(batch)
    return batch


model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = [torch.randn(64) for _ in range(320)]
for _ in range(3):
    for x in DataLoader(rows, batch_size=16, collate_fn=collate):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
