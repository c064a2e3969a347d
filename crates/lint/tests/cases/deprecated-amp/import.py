from torch.cuda.amp import autocast  # expect: deprecated-amp
