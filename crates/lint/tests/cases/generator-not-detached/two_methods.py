import torch
import torch.nn.functional as F


class Game:
    def __init__(self, G, D):
        self.G = G
        self.D = D
        self.g_optimizer = torch.optim.Adam(self.G.parameters())
        self.d_optimizer = torch.optim.Adam(self.D.parameters())

    def discriminator_step(self, real, noise):
        self.d_optimizer.zero_grad()
        fake = self.G(noise)
        loss = F.softplus(self.D(fake)).mean() + F.softplus(-self.D(real)).mean()  # expect: generator-not-detached
        loss.backward()
        self.d_optimizer.step()

    def generator_step(self, noise):
        self.g_optimizer.zero_grad()
        loss = F.softplus(-self.D(self.G(noise))).mean()
        loss.backward()
        self.g_optimizer.step()
