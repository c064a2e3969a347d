import torch


def train(model, batches, optimizer):
    for x, y in batches:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()


def evaluate(model, data, criterion):
    model.eval()
    total = 0.0
    for i in range(len(data)):
        total += criterion(model(data[i]), data[i]).item()  # expect: eval-without-no-grad
    return total
