import torch
x = torch.empty(1024, pin_memory=True).cuda(non_blocking=True)
