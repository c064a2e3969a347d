import torch
import torch.nn as nn

G, D = nn.Linear(72, 784), nn.Linear(792, 1)
g_solver = torch.optim.Adam(G.parameters())
d_solver = torch.optim.Adam(D.parameters())


def reset_grad():
    G.zero_grad()
    D.zero_grad()


for step in range(1000):
    labels, noise = torch.randn(32, 8), torch.randn(32, 64)
    made = G(torch.cat([noise, labels], 1))
    given = torch.cat([made, labels], 1)
    d_loss = -torch.mean(torch.log(torch.sigmoid(-D(given))))  # expect: generator-not-detached
    d_loss.backward()
    d_solver.step()
    reset_grad()

    made = G(torch.cat([noise, labels], 1))
    g_loss = -torch.mean(torch.log(torch.sigmoid(D(torch.cat([made, labels], 1)))))
    g_loss.backward()
    g_solver.step()
    reset_grad()
