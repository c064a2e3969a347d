import torch
from torch.utils.data import DataLoader

train_dl = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
model = build().cuda()
opt = torch.optim.Adam(model.parameters())
for epoch in range(20):
    for xb, yb in train_dl:
        xb = xb.cuda(non_blocking=True)  # expect: no-pin-memory
        yb = yb.cuda(non_blocking=True)
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
