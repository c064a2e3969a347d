"""Out of memory: the activations of one batch do not fit."""
import torch
from torch import nn


class Tall(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(24))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((1 << 30) / total)
    net = Tall().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = [net, optimizer]
    try:
        for size in (1024, 2048, 16384):
            x = torch.randn(size, 1024, device="cuda")
            loss = net(x).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    except torch.cuda.OutOfMemoryError as error:
        # As in an interactive session: the traceback keeps what filled the device.
        kept.append(error)
    return kept
