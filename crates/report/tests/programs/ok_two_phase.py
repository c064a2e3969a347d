"""Right: a warm-up phase with small batches, then a main phase with large ones; both are steady."""
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.b(F.relu(self.a(x))))

def run_phase(net, opt, steps, batch_size, lr):
    for group in opt.param_groups:
        group["lr"] = lr
    total = 0.0
    for _ in range(steps):
        x = torch.randn(batch_size, 3, 32, 32, device="cuda")
        y = torch.randint(0, 100, (batch_size,), device="cuda")
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item()
    return total / steps

def main():
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Block(32), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 100)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.0, momentum=0.9)
    warmup = run_phase(net, opt, steps=14, batch_size=32, lr=0.01)
    final = run_phase(net, opt, steps=18, batch_size=256, lr=0.1)
    return net, opt, warmup, final
