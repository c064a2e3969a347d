import torch
scaler = torch.amp.GradScaler("cuda")
losses = []
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss)  # expect: graph-kept
