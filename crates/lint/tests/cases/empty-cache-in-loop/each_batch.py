import torch
for batch in loader:
    output = model(batch)
    torch.cuda.empty_cache()  # expect: empty-cache-in-loop
