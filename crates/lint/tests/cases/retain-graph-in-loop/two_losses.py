import torch

for batch in loader:
    feats = encoder(batch)
    loss_a = head_a(feats).mean()
    loss_b = head_b(feats).mean()
    opt_a.zero_grad()
    opt_b.zero_grad()
    loss_a.backward(retain_graph=True)
    loss_b.backward()
    opt_a.step()
    opt_b.step()
