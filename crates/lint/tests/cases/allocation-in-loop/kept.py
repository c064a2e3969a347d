import torch
buffers = []
for i in range(4):
    buffer = torch.zeros(512, 512, device="cuda")
    buffers.append(buffer)
