import torch
def step(model, batch, criterion, optimizer):
    losses = []
    for level, target in zip(model(batch.x), batch.targets):
        losses.append(criterion(level, target))
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
