import torch
import torch.nn.functional as F

amp_ctx = torch.autocast(device_type="cuda", dtype=torch.bfloat16)
scaler = torch.amp.GradScaler("cuda")

for epoch in range(3):
    for inputs, targets in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            outputs = model(inputs.cuda())
        loss = F.cross_entropy(outputs, targets.cuda())  # expect: loss-outside-autocast
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
