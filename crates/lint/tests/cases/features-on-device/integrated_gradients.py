import torch


def attribute(model, image, target, device, steps=25):
    start = torch.zeros_like(image).to(device)
    grads = []
    for step in range(steps + 1):
        x = start + step / steps * (image - start)
        x.requires_grad_(True)
        score = model(x)[0, target]
        model.zero_grad()
        score.backward()
        grads.append(x.grad.detach())
    return (image - start) * torch.stack(grads).mean(dim=0)
