import torch


def hidden(batch_size, dim, device=torch.device("cuda")):
    h0 = torch.zeros(1, batch_size, dim).to(device)  # expect: create-then-move
    c0 = torch.zeros((1, batch_size, dim), dtype=torch.float32).to(device=device)  # expect: create-then-move
    return h0, c0
