import os, torch
from torch.utils.data import Dataset, DataLoader
class Images(Dataset):
    def __init__(self, root):
        self.paths = [os.path.join(root, name) for name in os.listdir(root)]  # expect: list-dataset-workers
    def __getitem__(self, i):
        return load(self.paths[i])
loader = DataLoader(Images("x"), num_workers=8)
