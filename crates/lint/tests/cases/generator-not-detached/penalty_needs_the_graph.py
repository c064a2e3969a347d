import torch
import torch.nn as nn

from penalties import gradient_penalty

gen, critic = nn.Linear(64, 784), nn.Linear(784, 1)
opt_gen = torch.optim.Adam(gen.parameters())
opt_critic = torch.optim.Adam(critic.parameters())
for real in loader:
    fake = gen(torch.randn(32, 64))
    penalty = gradient_penalty(critic, real, fake)
    loss_critic = torch.mean(critic(fake)) - torch.mean(critic(real)) + 10 * penalty
    critic.zero_grad()
    loss_critic.backward(retain_graph=True)
    opt_critic.step()
    gen.zero_grad()
    loss_gen = -torch.mean(critic(fake))
    loss_gen.backward()
    opt_gen.step()
