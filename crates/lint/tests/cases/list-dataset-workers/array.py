import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader
class Images(Dataset):
    def __init__(self, root):
        self.paths = np.array(sorted(glob(root)))
    def __getitem__(self, i):
        return load(self.paths[i])
loader = DataLoader(Images("x"), num_workers=8)
