"""A frozen backbone's features are cached in the first epoch; later epochs read them."""
import torch


class CachedFeatures(torch.utils.data.Dataset):
    def __init__(self, count):
        self.inputs = torch.randn(count, 32, 16)
        self.backbone = torch.nn.Linear(16, 16).eval()
        self.cache = {}

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if index not in self.cache:
            with torch.no_grad():
                self.cache[index] = self.backbone(self.inputs[index])
        return self.cache[index]


def main():
    loader = torch.utils.data.DataLoader(CachedFeatures(24), batch_size=None, shuffle=False)
    head = torch.nn.Linear(16, 2)
    optimizer = torch.optim.Adam(head.parameters())
    for epoch in range(4):
        for features in loader:
            optimizer.zero_grad()
            head(features).logsumexp(-1).mean().backward()
            optimizer.step()


main()
