import torch
for x in loader:
    h = torch.zeros(2, 32, 512, device="cuda")
    out, h = rnn(x, h)
