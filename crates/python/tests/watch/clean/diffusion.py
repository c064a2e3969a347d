"""Noise is predicted in training; every twenty steps samples are drawn, and only the latest are kept."""
import torch


class Denoiser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.time = torch.nn.Embedding(20, 32)
        self.enter, self.leave = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x, t):
        return self.leave(torch.nn.functional.silu(self.enter(x) + self.time(t)))


class Diffusion:
    def __init__(self):
        self.alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0)
        self.model = Denoiser()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.latest = None

    def train_step(self, x):
        t = torch.randint(0, 20, (len(x),))
        noise = torch.randn_like(x)
        a = self.alphas[t][:, None]
        loss = (self.model(a.sqrt() * x + (1 - a).sqrt() * noise, t) - noise).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def sample(self, count):
        x = torch.randn(count, 16)
        frames = [x]
        for t in reversed(range(20)):
            a = self.alphas[t]
            x = (x - (1 - a).sqrt() * self.model(x, torch.full((count,), t))) / a.sqrt().clamp(min=0.3)
            frames.append(x)
        self.latest = torch.stack(frames)


diffusion = Diffusion()
for step in range(100):
    diffusion.train_step(torch.randn(64, 16).sign())
    if step % 20 == 19:
        diffusion.sample(32)
