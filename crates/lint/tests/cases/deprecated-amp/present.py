import torch
from torch.amp import autocast, GradScaler
with torch.autocast("cuda"), torch.amp.autocast("cuda"):
    pass
