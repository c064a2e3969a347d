import torch
hidden = model.init_hidden(20)
for i in range(0, n, bptt):
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    optimizer.step()
