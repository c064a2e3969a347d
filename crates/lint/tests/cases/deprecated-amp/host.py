import torch
with torch.cpu.amp.autocast():  # expect: deprecated-amp
    pass
