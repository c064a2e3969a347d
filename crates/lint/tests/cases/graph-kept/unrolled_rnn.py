import torch
def loss_over_time(model, batch, optimizer, criterion):
    outputs = []
    hidden = None
    for t in range(batch.size(1)):
        output, hidden = model(batch[:, t], hidden)
        outputs.append(output)
    loss = criterion(torch.stack(outputs), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
