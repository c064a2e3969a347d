import torch
from contextlib import nullcontext

ctx = nullcontext() if device == "cpu" else torch.autocast(device_type=device, dtype=torch.bfloat16)
for X, Y in train_loader:
    with ctx:
        logits, loss = model(X, Y)
        loss = loss / accumulation
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
