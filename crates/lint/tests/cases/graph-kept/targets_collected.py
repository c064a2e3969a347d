import torch
targets, predictions = [], []
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
    targets.append(y)
    predictions.append(output.argmax(dim=1))
