import torch
import torch.nn as nn


class Game:
    def __init__(self, generator, critic):
        self.generator = generator
        self.critic = critic
        self.optimizer_g = torch.optim.RMSprop(self.generator.parameters())
        self.optimizer_c = torch.optim.RMSprop(self.critic.parameters())

    def train(self, loader):
        for real in loader:
            for _ in range(5):
                self.critic.zero_grad()
                score = self.critic(real).mean()
                score.backward(-torch.ones(()))
                fake = self.generator(torch.randn(32, 64))
                score_of_fake = self.critic(fake).mean()  # expect: generator-not-detached
                score_of_fake.backward()
                self.optimizer_c.step()
                for p in self.critic.parameters():
                    p.data.clamp_(-0.01, 0.01)
            self.generator.zero_grad()
            loss = -self.critic(self.generator(torch.randn(32, 64))).mean()
            loss.backward()
            self.optimizer_g.step()
