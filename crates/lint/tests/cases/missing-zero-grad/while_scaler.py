import torch

scaler = torch.amp.GradScaler("cuda")
step = 0
while step < max_steps:
    x, y = next(batches)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()  # expect: missing-zero-grad
    scaler.step(optimizer)
    scaler.update()
    step += 1
