import torch
kl_total = 0
for x in loader:
    optimizer.zero_grad()
    recon, mu, logvar = model(x)
    recon_loss = criterion(recon, x)
    kl_loss = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = recon_loss + kl_loss
    loss.backward()
    optimizer.step()
    kl_total += kl_loss  # expect: graph-kept
