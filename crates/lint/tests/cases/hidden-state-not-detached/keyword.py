import torch
state = None
for x, y in loader:
    optimizer.zero_grad()
    out, state = rnn(x, hx=state)  # expect: hidden-state-not-detached
    criterion(out, y).backward()
    optimizer.step()
