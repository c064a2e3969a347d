"""Right: LBFGS with a closure; its history fills up and stays."""
import torch
from torch import nn

def main():
    net = nn.Linear(512, 512).cuda()
    opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4, history_size=5)
    x = torch.randn(1024, 512, device="cuda"); y = torch.randn(1024, 512, device="cuda")
    losses = []
    for _ in range(10):
        def closure():
            opt.zero_grad()
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            return loss
        losses.append(opt.step(closure).item())
    return net, opt, losses
