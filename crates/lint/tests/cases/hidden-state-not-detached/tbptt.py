import torch

hidden = model.init_hidden(batch_size)
for i in range(0, data.size(0) - 1, bptt):
    inputs, targets = get_batch(data, i)
    hidden = tuple(h.data for h in hidden)
    model.zero_grad()
    output, hidden = model(inputs, hidden)
    loss = criterion(output.view(-1, ntokens), targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
