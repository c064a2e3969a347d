import torch
for real in loader:
    netD.zero_grad()
    errD = criterion(netD(real), label)
    errD.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(netG(noise)), label)
    errG.backward()
    optimizerG.step()
