import torch
for x in loader:
    y = x.transpose(0, 1).contiguous()
