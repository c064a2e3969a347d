import torch
for batch in loader:
    try:
        output = model(batch)
    except RuntimeError:
        torch.cuda.empty_cache()
