"""Clean: activations dropped in forward and computed again in backward."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x


def main():
    net = Deep().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(1024, 512, device="cuda")
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer
