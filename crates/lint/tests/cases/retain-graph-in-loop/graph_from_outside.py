import torch
features = model(x)
for head in heads:
    loss = head(features).sum()
    loss.backward(retain_graph=True)
