import gc, torch
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    gc.collect()  # expect: gc-collect-in-loop
