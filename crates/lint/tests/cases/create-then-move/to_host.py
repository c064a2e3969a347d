import torch
x = torch.zeros(1024).to("cpu")
