"""A CUDA graph: its memory lies in a private pool."""
import torch
from torch import nn


@torch.no_grad()
def main():
    net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
    x = torch.randn(1024, 512, device="cuda")
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        net(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = net(x)
    graph.replay()
    return net, graph, y
