import json, torch
from torch.utils.data import Dataset, DataLoader
class Rows(Dataset):
    def __init__(self, path):
        self.rows = json.load(open(path))  # expect: list-dataset-workers
    def __getitem__(self, i):
        return self.rows[i]
loader = DataLoader(dataset=Rows("x"), num_workers=4)
