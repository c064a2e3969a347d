"""Leak: d_loss.backward(retain_graph=True), and the losses themselves go into the records of the history."""
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F

@dataclass
class Record:
    step: int
    d_loss: torch.Tensor
    g_loss: torch.Tensor

def mlp(n_in, n_hidden, n_out):
    return nn.Sequential(nn.Linear(n_in, n_hidden), nn.LeakyReLU(0.2), nn.Linear(n_hidden, n_out)).cuda()

def bce(logits, target):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))

def main():
    G, D = mlp(64, 512, 784), mlp(784, 1024, 1)
    opt_g = torch.optim.SGD(G.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(D.parameters(), lr=0.01)
    history = []
    for step in range(20):
        real = torch.rand(1024, 784, device="cuda")
        fake = G(torch.randn(1024, 64, device="cuda"))

        opt_d.zero_grad()
        score_real = D(real)
        score_fake = D(fake)
        d_loss = bce(score_real, 1.0) + bce(score_fake, 0.0)
        d_loss.backward(retain_graph=True)  # fake is needed again below
        opt_d.step()

        opt_g.zero_grad()
        g_loss = bce(D(fake), 1.0)
        g_loss.backward()
        opt_g.step()
        history.append(Record(step, d_loss, g_loss))
    return G, D, opt_g, opt_d, history
