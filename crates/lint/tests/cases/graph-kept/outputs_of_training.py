import torch
outputs = []
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
    outputs.append(output)  # expect: graph-kept
