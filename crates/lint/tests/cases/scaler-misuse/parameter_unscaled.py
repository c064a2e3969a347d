import torch


def train(model, batches, optimizer, scaler):
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(model(x, y)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
