from torch.utils.checkpoint import checkpoint

# Modern reentrant=False (recommended)
output = checkpoint(model, x, use_reentrant=False)

# Legacy reentrant=True (less memory efficient)
output = checkpoint(model, x, use_reentrant=True)
