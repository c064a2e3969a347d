import torch
device = torch.device("cuda")
for step in range(1000):
    buffer = torch.zeros((rows, columns), device=device)  # expect: allocation-in-loop
    fill(buffer)
