import torch
for batch in loader:
    output = model(batch)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # expect: empty-cache-in-loop
