"""A recurrent state is carried from batch to batch without being detached."""
# kind: activation kept by a graph
# holder: local `hidden` of run()
import torch
from torch.utils.data import DataLoader, TensorDataset


def run():
    cell = torch.nn.GRUCell(32, 32)
    hidden = torch.zeros(16, 32)
    for (x,) in DataLoader(TensorDataset(torch.randn(640, 32)), batch_size=16):
        hidden = cell(x, hidden)  # made
    return hidden.sum().item()


run()
