import torch
for x, y in train_loader:
    hidden = rnn.initHidden()
    optimizer.zero_grad()
    for t in range(x.size(0)):
        output, hidden = rnn(x[t], hidden)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
