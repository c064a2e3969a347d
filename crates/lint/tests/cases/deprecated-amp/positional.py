import torch
with torch.cuda.amp.autocast(True):  # expect: deprecated-amp
    pass
