import torch
import numpy as np
for scores in loader:
    array = scores.detach().cpu().numpy()  # expect: round-trip-to-host
    array = np.clip(array, 0, 1)
    scores = torch.tensor(array).to(device)
