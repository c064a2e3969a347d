"""An encoder with dropout."""
import torch

model = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(4, 12, 32)).pow(2).mean().backward()
    optimizer.step()
