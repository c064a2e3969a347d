"""Clean: spans of the program's own in the trace."""
import torch
from torch import nn

RECORD = {"global_record_annotations": True}


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        with torch.profiler.record_function(f"step {step}"):
            x = torch.randn(512, 256, device="cuda")
            with torch.profiler.record_function("forward"):
                loss = net(x).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return net, optimizer
