import torch
from torch import nn
generator = nn.Sequential(nn.ConvTranspose2d(100, 64, 4), nn.BatchNorm2d(64))
for step, real in enumerate(dataloader):
    optimizer.zero_grad()
    loss = criterion(discriminator(generator(noise)), ones)
    loss.backward()
    optimizer.step()
    if step % 500 == 0:
        with torch.no_grad():
            images.append(generator(fixed_noise).cpu())
