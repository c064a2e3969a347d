import torch
torch.manual_seed(0)
x = torch.randn(64, 64).cuda()
y = torch.randn(64, 64, generator=g).to("cuda")
