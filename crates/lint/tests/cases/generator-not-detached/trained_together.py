import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

encoder, head = nn.Linear(64, 32), nn.Linear(32, 1)
optimizer_encoder = torch.optim.Adam(encoder.parameters())
optimizer_head = torch.optim.Adam(head.parameters())
for x, y in loader:
    optimizer_encoder.zero_grad()
    optimizer_head.zero_grad()
    loss = F.mse_loss(head(encoder(x)), y)
    loss.backward()
    optimizer_head.step()
    optimizer_encoder.step()

first, second = nn.Linear(64, 32), nn.Linear(32, 1)
optimizer_both = torch.optim.Adam(itertools.chain(first.parameters(), second.parameters()))
optimizer_first = torch.optim.Adam(first.parameters())
for x, y in loader:
    loss = F.mse_loss(second(first(x)), y)
    loss.backward()
    optimizer_both.step()
    optimizer_first.zero_grad()
    optimizer_both.zero_grad()
