import torch


def generate(model, ids, steps):
    with torch.no_grad():
        for _ in range(steps):
            logits = model(ids)
            last = logits[:, -1, :]  # expect: slice-keeps-storage
            probs = torch.softmax(last, dim=-1)
            ids = torch.cat([ids, probs.argmax(-1, keepdim=True)], dim=1)
            del logits
    return ids
