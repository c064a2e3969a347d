import torch
scaler = torch.amp.GradScaler()
for x, y in loader:
    with torch.autocast("cuda"):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()  # expect: missing-zero-grad
    scaler.step(optimizer)
    scaler.update()
