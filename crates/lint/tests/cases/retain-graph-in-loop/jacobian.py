import torch
out = model(x)
for i in range(out.size(0)):
    out[i].backward(retain_graph=True)
