import torch
import torch.nn as nn


def train(G, D, g_opt, d_opt, loader):
    bce = nn.BCEWithLogitsLoss()
    for real in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        d_opt.zero_grad()
        d_loss = bce(D(real), ones) + bce(D(G(torch.randn(len(real), 64))), zeros)  # expect: generator-not-detached
        d_loss.backward()
        d_opt.step()
        g_opt.zero_grad()
        g_loss = bce(D(G(torch.randn(len(real), 64))), ones)
        g_loss.backward()
        g_opt.step()
