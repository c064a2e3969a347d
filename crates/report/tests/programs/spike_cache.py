"""One big validation batch at the start leaves a large cache that is never used again."""
import torch
from torch import nn

def main():
    net = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.no_grad():
        net(torch.randn(60000, 512, device="cuda"))
    for _ in range(20):
        opt.zero_grad()
        net(torch.randn(64, 512, device="cuda")).sum().backward()
        opt.step()
    return net, opt
