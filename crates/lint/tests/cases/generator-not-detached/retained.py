import torch
import torch.nn as nn
from torch import optim

gen = nn.Linear(64, 784)
disc = nn.Linear(784, 1)
opt_gen = optim.Adam(gen.parameters())
opt_disc = optim.Adam(disc.parameters())
criterion = nn.BCEWithLogitsLoss()
for real, _ in loader:
    fake = gen(torch.randn(32, 64))
    on_real = disc(real).view(-1)
    loss_real = criterion(on_real, torch.ones_like(on_real))
    on_fake = disc(fake).view(-1)  # expect: generator-not-detached
    loss_fake = criterion(on_fake, torch.zeros_like(on_fake))
    loss_disc = (loss_real + loss_fake) / 2
    disc.zero_grad()
    loss_disc.backward(retain_graph=True)
    opt_disc.step()

    output = disc(fake).view(-1)
    loss_gen = criterion(output, torch.ones_like(output))
    gen.zero_grad()
    loss_gen.backward()
    opt_gen.step()
