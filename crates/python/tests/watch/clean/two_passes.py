"""Predictions on one data set, then on another: each pass gathers its own in a list of a function that it leaves."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def predict(model, loader):
    predicted = []
    with torch.no_grad():
        for (x,) in loader:
            predicted.append(model(x))
    return torch.cat(predicted)


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 64).eval()
    validation = DataLoader(TensorDataset(torch.randn(20 * 8, 16)), batch_size=8)
    test = DataLoader(TensorDataset(torch.randn(100 * 8, 16)), batch_size=8)
    print(predict(model, validation).shape, predict(model, test).shape)


main()
