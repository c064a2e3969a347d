import torch


def train_step(model, batch, optimizer, criterion):
    optimizer.zero_grad()
    loss = criterion(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def fit(model, loader, optimizer, criterion):
    losses = []
    for batch in loader:
        losses.append(train_step(model, batch, optimizer, criterion))
    return sum(losses) / len(losses)
