import os, torch
from torch.utils.data import Dataset
class Images(Dataset):
    def __init__(self, root):
        self.paths = [p for p in os.listdir(root)]
    def __getitem__(self, i):
        return load(self.paths[i])
