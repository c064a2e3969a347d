import gc, torch
for i, (x, y) in enumerate(loader):
    output = model(x)
    if not i % 200:
        gc.collect()
