import torch
for x in loader:
    out = model(x.cuda())
    loss = criterion(out, target.cuda())  # expect: transfer-in-loop
