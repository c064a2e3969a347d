"""Fragmentation: 48 candidate networks of different widths, every fourth one stays; their weights hold segments that are mostly free."""
import random
import torch
from torch import nn
import torch.nn.functional as F

class Candidate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(1024, width, device="cuda")
        self.out = nn.Linear(width, 32, device="cuda")

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))

def search(count=48):
    rng = random.Random(7)
    population = [Candidate(rng.randrange(700, 2000)) for _ in range(count)]
    x = torch.randn(256, 1024, device="cuda")
    with torch.no_grad():
        spread = [c(x).std().item() for c in population]
    return population[::4], spread  # one of each family

def main():
    ensemble, spread = search()
    student = nn.Sequential(nn.Linear(1024, 1200), nn.ReLU(), nn.Linear(1200, 32)).cuda()
    opt = torch.optim.SGD(student.parameters(), lr=0.01)
    for step in range(24):
        x = torch.randn(8192, 1024, device="cuda")
        with torch.no_grad():
            target = ensemble[step % len(ensemble)](x)
        loss = F.mse_loss(student(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return ensemble, student, opt, spread
