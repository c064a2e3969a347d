import torch
for epoch in range(10):
    for batch in loader:
        optimizer.zero_grad()
        criterion(model(batch), y).backward()
        optimizer.step()
    torch.cuda.empty_cache()
