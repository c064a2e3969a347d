import torch
g_losses, d_losses = [], []
for real in dataloader:
    optimizerD.zero_grad()
    loss_d = criterion(netD(real), ones)
    loss_d.backward()
    optimizerD.step()
    optimizerG.zero_grad()
    loss_g = criterion(netD(netG(noise)), ones)
    loss_g.backward()
    optimizerG.step()
    g_losses.append(loss_g)  # expect: graph-kept
    d_losses.append(loss_d.item())
