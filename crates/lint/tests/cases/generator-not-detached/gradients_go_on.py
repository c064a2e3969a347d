import torch
import torch.nn as nn
import torch.nn.functional as F

G, D = nn.Linear(64, 784), nn.Linear(784, 1)
opt_G = torch.optim.Adam(G.parameters(), maximize=True)
opt_D = torch.optim.Adam(D.parameters())
for real in loader:
    opt_G.zero_grad()
    opt_D.zero_grad()
    loss = F.softplus(D(G(torch.randn(32, 64)))).mean() + F.softplus(-D(real)).mean()
    loss.backward()
    opt_D.step()
    opt_G.step()
