import torch
from torch.utils.data import Dataset, DataLoader
class Parts(Dataset):
    def __init__(self):
        self.parts = [name for name in ("a", "b")]
    def __getitem__(self, i):
        return self.parts[i]
loader = DataLoader(Parts(), num_workers=8)
