import torch
scaler = torch.amp.GradScaler()
for x, y in loader:
    optimizer.zero_grad()
    scaler.scale(criterion(model(x), y)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: scaler-misuse
    scaler.step(optimizer)
    scaler.update()
