import torch
model = torch.nn.Linear(4, 4)
losses = []
for i in range(1000):
    output = model(data)
    loss = torch.nn.functional.mse_loss(output, target)
    losses.append(loss)  # expect: graph-kept
print(sum(l.item() for l in losses))
