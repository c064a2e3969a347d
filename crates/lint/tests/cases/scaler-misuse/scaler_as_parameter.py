import torch


def train(model, batches, optimizer, scaler, accumulate):
    for parts in batches:
        for x, y in parts:
            loss = model(x, y)
            scaler.scale(loss / accumulate).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: scaler-misuse
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
