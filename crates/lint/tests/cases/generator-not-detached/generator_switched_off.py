import torch
import torch.nn as nn
import torch.nn.functional as F

from switches import set_requires_grad

G, D = nn.Linear(64, 784), nn.Linear(784, 1)
opt_G = torch.optim.Adam(G.parameters())
opt_D = torch.optim.Adam(D.parameters())
for real in loader:
    set_requires_grad(G, False)
    opt_D.zero_grad()
    loss_d = F.softplus(D(G(torch.randn(32, 64)))).mean()
    loss_d.backward()
    opt_D.step()
    set_requires_grad(G, True)
    opt_G.zero_grad()
    loss_g = F.softplus(-D(G(torch.randn(32, 64)))).mean()
    loss_g.backward()
    opt_G.step()
