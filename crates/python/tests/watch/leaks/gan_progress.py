"""Samples of a fixed noise are kept to show the progress, made without `no_grad`."""
# kind: activation kept by a graph
# holder: `img_list`
import torch
import torch.nn as nn

netG = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.Tanh())
netD = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizerD = torch.optim.Adam(netD.parameters(), betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(16, 8)
img_list = []
G_losses, D_losses = [], []

for it in range(40):
    real = torch.randn(16, 64)
    netD.zero_grad()
    errD_real = criterion(netD(real), torch.ones(16, 1))
    errD_real.backward()
    fake = netG(torch.randn(16, 8))
    errD_fake = criterion(netD(fake.detach()), torch.zeros(16, 1))
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(fake), torch.ones(16, 1))
    errG.backward()
    optimizerG.step()
    G_losses.append(errG.item())
    D_losses.append((errD_real + errD_fake).item())
    img_list.append(netG(fixed_noise))  # made
