import torch
from torch.utils.data import Dataset, DataLoader
class Lines(Dataset):
    def __init__(self, path):
        self.lines = []
        for line in open(path):
            self.lines.append(line.split())  # expect: list-dataset-workers
    def __getitem__(self, i):
        return self.lines[i]
data = Lines("x.txt")
loader = DataLoader(data, batch_size=4, num_workers=2)
