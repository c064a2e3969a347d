import json
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self, root, annotation_file):
        self.root = Path(root)
        data = json.load(open(annotation_file))
        self.samples = []
        for entry in data["annotations"]:
            self.samples.append((entry["image_id"], entry["caption"]))  # expect: list-dataset-workers

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        image_id, caption = self.samples[index]
        return image_id, caption


def main():
    train = Captions("coco", "captions.json")
    loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=8)
    for ids, captions in loader:
        pass
