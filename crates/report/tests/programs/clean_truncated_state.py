"""Clean: a recurrent state is carried over, detached."""
import torch
from torch import nn


def main():
    net = nn.LSTM(64, 256, batch_first=True).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    state = None
    for _ in range(8):
        x = torch.randn(64, 16, 64, device="cuda")
        out, state = net(x, state)
        state = tuple(part.detach() for part in state)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer, state
