import torch
def outer(model, tasks, optimizer, criterion):
    meta_loss = 0.0
    for task in tasks:
        query_loss = criterion(model(task.x), task.y)
        meta_loss = meta_loss + query_loss
    optimizer.zero_grad()
    meta_loss.backward()
    optimizer.step()
