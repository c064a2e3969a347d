import torch
def attend(x: torch.Tensor, b, t, h, d):
    y = x.view(b, h, t, d).transpose(1, 2)
    return y.contiguous().view(b, t, h * d)
