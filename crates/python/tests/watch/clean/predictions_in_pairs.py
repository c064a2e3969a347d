"""Each prediction of one pass is gathered with its number."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, data):
    found = []
    with torch.no_grad():
        for number, (x,) in enumerate(data):
            found.append((number, model(x)))
    return found


data = DataLoader(TensorDataset(torch.randn(640, 64)), batch_size=16)
print(len(evaluate(torch.nn.Linear(64, 64).eval(), data)))
