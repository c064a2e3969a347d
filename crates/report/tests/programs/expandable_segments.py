"""Clean, with expandable segments: pages are mapped and unmapped."""
import torch
from torch import nn

ENVIRONMENT = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def main():
    net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for batch in (512, 4096, 1024, 512, 512, 512):
        x = torch.randn(batch, 512, device="cuda")
        loss = (net(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del x, loss
    torch.cuda.empty_cache()
    return net, optimizer
