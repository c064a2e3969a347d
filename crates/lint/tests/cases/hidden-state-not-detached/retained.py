import torch
import torch.nn as nn

gru = nn.GRU(8, 8)
criterion = nn.MSELoss()
hidden = None
for x, y in loader:
    gru.zero_grad()
    output, hidden = gru(x, hidden)  # expect: hidden-state-not-detached
    loss = criterion(output, y)
    loss.backward(retain_graph=True)

optimizer = torch.optim.Adam(gru.parameters())
state = None
for x, y in loader:
    optimizer.zero_grad()
    output, state = gru(x, state)  # expect: hidden-state-not-detached
    loss = criterion(output, y)
    loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
    optimizer.step()
