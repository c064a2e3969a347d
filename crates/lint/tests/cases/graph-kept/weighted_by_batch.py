import torch


def train_epoch(net, loader, opt, criterion):
    epoch_loss = 0.0
    for x, y in loader:
        opt.zero_grad()
        out = net(x)
        loss = criterion(out, y)
        loss.backward()
        opt.step()
        epoch_loss += loss * x.size(0)  # expect: graph-kept
    return epoch_loss / len(loader.dataset)
