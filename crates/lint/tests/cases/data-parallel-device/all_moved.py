import torch
import torch.nn as nn

net = nn.DataParallel(Net()).to("cuda")
for batch in train_loader:
    optimizer.zero_grad()
    x, y = (t.to("cuda") for t in batch)
    out = net(x)
    loss = nn.functional.nll_loss(out, y)
    loss.backward()
    optimizer.step()
