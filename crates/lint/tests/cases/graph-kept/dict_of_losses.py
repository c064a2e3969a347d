import torch
import torch.nn.functional as F


def train(model, optimizer, loader, device):
    log = {"total": [], "kl": [], "rec": []}
    for images, _ in loader:
        images = images.to(device)
        optimizer.zero_grad()
        rec, mu, logvar = model(images)
        rec_loss = F.mse_loss(rec, images)
        kl_loss = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
        losses = {"rec": rec_loss, "kl": kl_loss}
        total = sum(losses.values())
        total.backward()
        optimizer.step()
        log["total"].append(total.item())
        log["rec"].append(rec_loss)  # expect: graph-kept
    return log
