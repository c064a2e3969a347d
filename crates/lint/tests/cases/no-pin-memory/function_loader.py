import torch
from torch.utils.data import DataLoader


def loaders(ds, args):
    return DataLoader(ds, args.batch_size, shuffle=True, pin_memory=torch.cuda.is_available())


loader = loaders(ds, args)
plain = DataLoader(ds, batch_size=4)
for x, y in loader:
    out = model(x.to("cuda", non_blocking=True))
for x, y in plain:
    stats.update(x.mean())
