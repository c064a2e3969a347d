"""Two models, two optimizers that take turns."""
import torch
from torch import nn

generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
critic = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
for _ in range(60):
    fake = generator(torch.randn(32, 8))
    loss = critic(fake.detach()).mean() - critic(torch.randn(32, 16)).mean()
    of_critic.zero_grad()
    loss.backward()
    of_critic.step()
    of_generator.zero_grad()
    (-critic(fake).mean()).backward()
    of_generator.step()
