import torch
for i, batch in enumerate(loader):
    output = model(batch)
    if i % 100 == 0:
        torch.cuda.empty_cache()
