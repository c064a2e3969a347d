import torch
def supports(dtype, device):
    try:
        torch.zeros((2, 2), dtype=dtype).to(device)
        return True
    except Exception:
        return False
