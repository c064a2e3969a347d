import torch
x = torch.tensor([1.0, 2.0]).cuda()
y = torch.from_numpy(array).to("cuda")
