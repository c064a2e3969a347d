import torch
for batch in loader:
    array = batch.cpu().numpy()
    save(array)
