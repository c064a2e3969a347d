import torch
cell = torch.nn.LSTMCell(8, 8)
h, c = h0, c0
for x, y in loader:
    optimizer.zero_grad()
    h, c = cell(x, (h, c))
    h, c = h.detach(), c.detach()
    criterion(h, y).backward()
    optimizer.step()
