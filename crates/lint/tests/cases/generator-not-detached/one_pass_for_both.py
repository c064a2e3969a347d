import torch
import torch.nn as nn

G, D = nn.Linear(64, 784), nn.Linear(784, 1)
opt_G = torch.optim.Adam(G.parameters())
opt_D = torch.optim.Adam(D.parameters())
for step in range(1000):
    fake = G(torch.randn(32, 64))
    score = torch.log(1 - torch.sigmoid(D(fake)))
    d_loss = -torch.mean(score)
    g_loss = torch.mean(score)
    opt_D.zero_grad()
    d_loss.backward(retain_graph=True)
    opt_D.step()
    opt_G.zero_grad()
    g_loss.backward()
    opt_G.step()
