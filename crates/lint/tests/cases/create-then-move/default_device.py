import torch
torch.set_default_device("cuda")
x = torch.zeros(64).to("cuda")
