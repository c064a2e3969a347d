import torch
def attend(x: torch.Tensor, b, t, h, d):
    y = x.view(b, t, h, d).transpose(1, 2)
    return y.view(b, t, h * d)  # expect: view-on-non-contiguous
