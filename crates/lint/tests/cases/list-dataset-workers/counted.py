import torch
from torch.utils.data import Dataset, DataLoader
class Subjects(Dataset):
    def __init__(self, roots):
        self.prompts = []
        for i in range(len(roots)):
            self.prompts.append(roots[i].name)
    def __getitem__(self, i):
        return self.prompts[i]
loader = DataLoader(Subjects(roots), num_workers=2)
