import torch

model = torch.nn.GRU(8, 16, batch_first=True)
head = torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
h = torch.zeros(1, 32, 16)
for epoch in range(10):
    for seq, target in train_loader:
        out, h = model(seq, h)  # expect: hidden-state-not-detached
        loss = ((head(out[:, -1]) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
