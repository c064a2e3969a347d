import torch.nn.functional as F


def step(model, optimizer, batch, weights):
    optimizer.zero_grad()
    outs = model(batch["image"])
    total = 0
    parts = {}
    for name, out in outs.items():
        parts[name] = F.l1_loss(out, batch[name])
        total = total + weights[name] * parts[name]
    total.backward()
    optimizer.step()
    return {k: v.item() for k, v in parts.items()}
