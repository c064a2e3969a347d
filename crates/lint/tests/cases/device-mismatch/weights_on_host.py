import torch


def score():
    queries = torch.randn(128, 64).cuda()
    keys = torch.randn(1000, 64)
    sims = torch.matmul(queries, keys.t())  # expect: device-mismatch
    bias = torch.zeros(128, 1000)
    both = queries @ keys.T  # expect: device-mismatch
    a = torch.randn(3, 3, device="cuda:0")
    c = torch.eye(3)
    return sims + bias, both, a @ c  # expect: device-mismatch
