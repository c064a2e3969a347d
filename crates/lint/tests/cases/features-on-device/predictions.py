import torch
predictions = []
with torch.no_grad():
    for x, y in loader:
        out = model(x.cuda())
        predictions.append(out.argmax(dim=1))
