import torch
def channels_last(x: torch.Tensor, b, c, h, w):
    return x.view(b, c, h, w).permute(0, 2, 3, 1).view(b, h * w, c)
