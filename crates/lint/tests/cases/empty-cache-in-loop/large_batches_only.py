import torch
for batch in loader:
    output = model(batch)
    if batch.size(0) > 64:
        torch.cuda.empty_cache()
