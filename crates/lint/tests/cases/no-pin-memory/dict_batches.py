import torch
import torch.utils.data as data
loader = data.DataLoader(dataset, pin_memory=False)
for i, batch in enumerate(loader):
    images = batch["image"].cuda(non_blocking=True)  # expect: no-pin-memory
