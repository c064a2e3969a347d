import torch
y = torch.from_numpy(x.cpu().numpy()).cuda()  # expect: round-trip-to-host
