"""A data set keeps what it has made; only the loop's loader leads to it."""
# kind: value
# holder: a running loop's loader._dataset.cache
import torch
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 5000

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = torch.randn(512)  # made
        return self.cache[index]


def main():
    model = torch.nn.Linear(512, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, x in enumerate(DataLoader(Cached(), batch_size=8, shuffle=True)):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        if step == 60:
            break


main()
