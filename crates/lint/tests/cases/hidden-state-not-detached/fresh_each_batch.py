import torch
for x, y in train_loader:
    hidden = torch.zeros(1, x.size(0), 64)
    optimizer.zero_grad()
    out, hidden = rnn(x, hidden)
    criterion(out, y).backward()
    optimizer.step()
