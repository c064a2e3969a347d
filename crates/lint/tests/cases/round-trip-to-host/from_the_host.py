import torch
for batch in loader:
    x = torch.from_numpy(batch).cuda()
