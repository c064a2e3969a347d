"""Clean: two networks and two optimizers take turns."""
import torch
from torch import nn


def main():
    maker = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784)).cuda()
    judge = nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).cuda()
    maker_optimizer = torch.optim.Adam(maker.parameters())
    judge_optimizer = torch.optim.Adam(judge.parameters())
    for _ in range(6):
        real = torch.randn(256, 784, device="cuda")
        fake = maker(torch.randn(256, 64, device="cuda"))
        judge_loss = judge(fake.detach()).mean() - judge(real).mean()
        judge_optimizer.zero_grad()
        judge_loss.backward()
        judge_optimizer.step()
        maker_loss = -judge(fake).mean()
        maker_optimizer.zero_grad()
        maker_loss.backward()
        maker_optimizer.step()
    return maker, judge, maker_optimizer, judge_optimizer
