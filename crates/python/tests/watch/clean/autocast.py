"""Mixed precision on the host."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(50):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(16, 32)).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
