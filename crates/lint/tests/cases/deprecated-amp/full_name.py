import torch
with torch.cuda.amp.autocast():  # expect: deprecated-amp
    pass
scaler = torch.cuda.amp.GradScaler(enabled=True)  # expect: deprecated-amp
