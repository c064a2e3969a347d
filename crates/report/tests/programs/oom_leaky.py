"""Losses with graphs are kept until the limit is reached."""
import torch
from torch import nn

def main():
    torch.cuda.set_per_process_memory_fraction((1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.GELU())]).cuda()
    opt = torch.optim.Adam(net.parameters())
    history = []
    try:
        for i in range(400):
            x = torch.randn(256, 1024, device="cuda")
            loss = (net(x) ** 2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
            history.append(loss)
    except torch.OutOfMemoryError:
        pass
    return net, opt, history
