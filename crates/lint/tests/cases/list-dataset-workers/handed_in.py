import torch
from torch.utils.data import Dataset, DataLoader
class Files(Dataset):
    def __init__(self, files):
        self.files = files
    def __getitem__(self, i):
        return torch.load(self.files[i])
loader = DataLoader(Files(names), num_workers=8)
