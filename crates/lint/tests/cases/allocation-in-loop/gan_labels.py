import torch
import torch.nn as nn

device = "cuda"
bce = nn.BCEWithLogitsLoss()
for epoch in range(epochs):
    for real, _ in dataloader:
        real = real.to(device)
        mask = torch.zeros(512, 512, device=device)  # expect: allocation-in-loop
        scores = netD(real) + mask
        loss = bce(scores, torch.ones_like(scores))
        optimizerD.zero_grad()
        loss.backward()
        optimizerD.step()
