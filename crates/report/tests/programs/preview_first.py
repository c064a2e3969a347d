"""Leak: the first picture of each reconstruction is kept as a preview; recon[0].detach() keeps the storage of the batch."""
import torch
from torch import nn
import torch.nn.functional as F

class Denoiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.inp(x))
        h = F.relu(self.mid(h))
        return x + self.out(h)

def main():
    torch.manual_seed(0)
    model = Denoiser().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    gallery = {}
    for step in range(24):
        clean = torch.rand(64, 3, 96, 96, device="cuda")
        noisy = clean + 0.1 * torch.randn_like(clean)
        recon = model(noisy)
        loss = F.l1_loss(recon, clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        gallery[f"step {step:03}"] = recon[0].detach()
    return model, opt, gallery
