import numpy as np
import torch


def smooth(preds, device):
    for k in range(10):
        arr = preds.detach().cpu().numpy()  # expect: round-trip-to-host
        arr = np.clip(arr, 0, 1)
        preds = torch.from_numpy(arr).to(device)
    return preds
