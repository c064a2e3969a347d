"""The pair of states of an LSTM is carried from batch to batch without being detached."""
# kind: activation kept by a graph
# holder: local `state` of run() -> tuple of 2
import torch
from torch.utils.data import DataLoader, TensorDataset


def run():
    cell = torch.nn.LSTMCell(32, 32)
    state = torch.zeros(16, 32), torch.zeros(16, 32)
    for (x,) in DataLoader(TensorDataset(torch.randn(640, 32)), batch_size=16):
        state = cell(x, state)  # made
    return state[0].sum().item()


run()
