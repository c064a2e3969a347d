import torch
import torch.nn as nn
import torch.nn.functional as F

netG, netD = nn.Linear(64, 784), nn.Linear(784, 1)
optimizerG = torch.optim.Adam(netG.parameters())
optimizerD = torch.optim.Adam(netD.parameters())
for real in loader:
    fake = netG(torch.randn(32, 64))
    optimizerD.zero_grad()
    loss_d = F.softplus(netD(fake.detach())).mean() + F.softplus(-netD(real)).mean()
    loss_d.backward()
    optimizerD.step()
    optimizerG.zero_grad()
    loss_g = F.softplus(-netD(fake)).mean()
    loss_g.backward()
    optimizerG.step()

for real in loader:
    with torch.no_grad():
        fake = netG(torch.randn(32, 64))
    optimizerD.zero_grad()
    F.softplus(netD(fake)).mean().backward()
    optimizerD.step()
    optimizerG.zero_grad()

for real in loader:
    made = netG(torch.randn(32, 64)).data
    optimizerD.zero_grad()
    loss_d = F.softplus(netD(made)).mean()
    loss_d.backward()
    optimizerD.step()
    optimizerG.zero_grad()
