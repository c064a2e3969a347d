"""The epoch's loss is summed as a tensor: total = total + loss."""
import torch
from torch import nn

def train(net, opt, steps):
    total = 0
    for i in range(steps):
        x = torch.randn(512, 256, device="cuda")
        loss = (net(x) - x).pow(2).mean()
        total = total + loss
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    return total

def main():
    net = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    return net, opt, train(net, opt, 15)
