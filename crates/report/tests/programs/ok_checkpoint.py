"""Right: gradient checkpointing of residual blocks; activations are computed again in the backward pass and freed."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x

def main():
    net = Net(512, 3).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    losses = []
    for step in range(16):
        x = torch.randn(2048, 512, device="cuda")
        loss = (net(x) - x).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach().item())
    return net, opt, losses
