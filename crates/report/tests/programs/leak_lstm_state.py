"""Leak: the state of an LSTM goes from batch to batch with its graph."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(64, 256, batch_first=True)
        self.head = nn.Linear(256, 64)

    def forward(self, x, state):
        out, state = self.rnn(x, state)
        return self.head(out), state


def main():
    model = Model().cuda()
    state = None
    for _ in range(8):
        x = torch.randn(64, 16, 64, device="cuda")
        out, state = model(x, state)
        loss = (out - x).square().mean()
        loss.backward(retain_graph=True)
        model.zero_grad()
    return model, state
