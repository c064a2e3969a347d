"""A critic with a gradient penalty, five of its steps to one of the generator."""
import torch
import torch.nn as nn


def penalty(critic, real, fake):
    weight = torch.rand(real.shape[0], 1)
    mixed = (weight * real + (1 - weight) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((gradient.norm(dim=1) - 1) ** 2).mean()


generator = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 20))
critic = nn.Sequential(nn.Linear(20, 32), nn.LeakyReLU(), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0.0, 0.9))
of_critic = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))
curve = []
for _ in range(20):
    for _ in range(5):
        real, fake = torch.randn(32, 20), generator(torch.randn(32, 6)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        curve.append(loss.item())
    of_generator.zero_grad()
    (-critic(generator(torch.randn(32, 6))).mean()).backward()
    of_generator.step()
print(len(curve))
